"""Tests that take long: `make check` leaves them out, `make prove-tests` runs them."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet

thorough = pytest.mark.thorough


def is_thorough(case: Any) -> Any:
    """Mark a case of a test as one that the gate leaves out."""
    if isinstance(case, ParameterSet):
        return pytest.param(*case.values, marks=[*case.marks, thorough], id=case.id)
    values = case if type(case) is tuple else (case,)  # a named tuple is one value
    return pytest.param(*values, marks=thorough)


def thinned(cases: Iterable[Any], step: int) -> Sequence[Any]:
    """Leave every step-th case of a test to the gate, the first one included, and mark the others."""
    return [is_thorough(case) if number % step else case for number, case in enumerate(cases)]


def sampled(step: int) -> pytest.MarkDecorator:
    """Leave every step-th case of a test to the gate, by the names of the cases, whatever they are made of."""
    return pytest.mark.sampled(step)


def mark_left_out(items: Sequence[pytest.Item]) -> None:
    """Mark the cases of sampled tests that the gate leaves out."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for each in cases.values():
        for number, item in enumerate(sorted(each, key=lambda one: one.nodeid)):
            marker = item.get_closest_marker("sampled")
            if marker and number % marker.args[0]:
                item.add_marker(thorough)
