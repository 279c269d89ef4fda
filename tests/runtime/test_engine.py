from collections.abc import Callable, Sequence

import numpy as np
import pytest

from heedful.errors import UsageError
from heedful.runtime.engine import Backend, IntArray, Stepwise, decode_sorted
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.interface import Hypothesis
from heedful.text.vocabulary import EOS
from tests.search.engines import Toy

SOURCES = [np.array([4 + i % 3] * length + [EOS]) for i, length in enumerate((3, 0, 5, 1, 1, 4, 2))]
CONFIG = SearchConfig(beam=3, nbest=2, max_length_ratio=1.0, max_length_offset=4)


class Spy(Backend):
    """Answers with the length of each source, and remembers its batches."""

    name = "spy"

    def __init__(self, refuses: str | None = None) -> None:
        self.batches: list[list[int]] = []
        self._refuses = refuses

    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        return self._refuses

    def decode(
        self,
        source_ids: Sequence[IntArray],
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
    ) -> list[list[Hypothesis]]:
        self.batches.append([len(ids) for ids in source_ids])
        return [[Hypothesis((len(ids),), 0.0, 0.0, (0.0,), "length")] for ids in source_ids]


@pytest.mark.parametrize("batch_tokens", [1, 12, 18, 10_000])
def test_results_come_in_the_order_asked(batch_tokens: int):
    spy = Spy()
    results = decode_sorted(spy, SOURCES, CONFIG, batch_tokens=batch_tokens)
    assert [found[0].token_ids[0] for found in results] == [len(ids) for ids in SOURCES]
    lengths = [length for batch in spy.batches for length in batch]
    assert lengths == sorted(lengths, reverse=True)
    for batch in spy.batches:
        assert len(batch) * max(batch) * CONFIG.beam <= batch_tokens or len(batch) == 1


def test_batches_are_as_large_as_the_budget_allows():
    spy = Spy()
    decode_sorted(spy, SOURCES, CONFIG, batch_tokens=36)
    assert spy.batches == [[6, 5], [4, 3, 2], [2, 1]]


def test_nothing_to_decode():
    spy = Spy()
    assert decode_sorted(spy, [], CONFIG) == []
    assert spy.batches == []


def test_what_a_backend_cannot_do_is_refused_with_its_reason():
    with pytest.raises(UsageError, match="spy: no coverage penalty"):
        decode_sorted(Spy("no coverage penalty"), SOURCES, CONFIG)


def test_stepwise_is_the_search():
    backend = Stepwise("toy", lambda with_weights: Toy(seed=3), max_length=30)
    assert backend.supports(CONFIG, need_alignment=True) is None
    wanted = search(Toy(seed=3), SOURCES, CONFIG, max_length=30)
    assert backend.decode(SOURCES, CONFIG) == wanted
    assert decode_sorted(backend, SOURCES, CONFIG, batch_tokens=20) == wanted


@pytest.mark.parametrize(
    ("need_alignment", "beta", "with_weights"), [(False, 0.0, False), (True, 0.0, True), (False, 0.5, True)]
)
def test_weights_are_computed_where_something_reads_them(need_alignment: bool, beta: float, with_weights: bool):
    asked: list[bool] = []

    def make(wanted: bool) -> Toy:
        asked.append(wanted)
        return Toy(has_weights=wanted)

    config = SearchConfig(beam=2, beta=beta, max_length_offset=3)
    found = Stepwise("toy", make, max_length=10).decode(SOURCES, config, need_alignment)
    assert asked == [with_weights]
    assert (found[0][0].weights is not None) == need_alignment


def test_the_longest_output_is_bounded():
    backend = Stepwise("toy", lambda with_weights: Toy(seed=1), max_length=2)
    found = backend.decode(SOURCES, SearchConfig(beam=2))
    assert max(len(one.token_log_probs) for hypotheses in found for one in hypotheses) <= 2


def test_a_search_may_be_called_off():
    found = Stepwise("toy", lambda with_weights: Toy(), max_length=9).decode(SOURCES, CONFIG, cancelled=lambda: True)
    assert {one.finish_reason for hypotheses in found for one in hypotheses} == {"cancelled"}
