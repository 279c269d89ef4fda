"""Public classes of attention and of layers name the work that they come from, or have none."""

import importlib
from typing import Final

import pytest

from heedful.cli.list import describe

OURS: Final = "interface, result or tool of this package"
PLAIN: Final = "no work of anybody: a mean, zeros, or a function of the user"
WITHOUT: Final = {
    "Attended": OURS,
    "Biased": OURS,
    "Choice": OURS,
    "Constant": PLAIN,
    "Function": PLAIN,
    "Mask": OURS,
    "NoPositions": PLAIN,
    "Normalized": OURS,
    "Normalizer": OURS,
    "Packing": OURS,
    "Positions": OURS,
    "PreparedKey": OURS,
    "RecurrentUnit": OURS,
    "Score": OURS,
    "ScoreBias": OURS,
    "SoftStart": OURS,
    "Uniform": PLAIN,
}
"""Classes without a source, each with the reason."""


def without_source(names: dict[str, object]) -> list[str]:
    """Classes whose docstring names no work with its year."""
    return sorted(name for name, value in names.items() if isinstance(value, type) and not describe(value).source)


@pytest.mark.parametrize("package", ["heedful.attention", "heedful.layers"])
def test_every_class_names_its_source(package: str):
    loaded = importlib.import_module(package)
    found = without_source({name: getattr(loaded, name) for name in loaded.__all__})
    assert [name for name in found if name not in WITHOUT] == []
    assert [name for name in WITHOUT if name in loaded.__all__ and name not in found] == [], "has a source"


def test_a_class_without_a_source_is_found():
    class Novel:
        """a(q, k) = q k."""

    class Known:
        """a(q, k) = q . k. Luong et al. 2015, section 3.1."""

    assert without_source({"Novel": Novel, "Known": Known, "table": {}}) == ["Novel"]
