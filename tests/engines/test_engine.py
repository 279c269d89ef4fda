from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from heedful.engines.engine import Backend, Stepwise, decode_sorted
from heedful.errors import ResourceError, UsageError
from heedful.search.beam import search
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.forced import score_outputs
from heedful.search.inputs import Sources, as_inputs
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
        self.constraints: list[Constraints] = []
        self._refuses = refuses

    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        return self._refuses

    def decode(
        self,
        sources: Sources,
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
        constraints: Sequence[Constraints] | None = None,
    ) -> list[list[Hypothesis]]:
        self.constraints += constraints or []
        lengths = as_inputs(sources).num_positions.tolist()
        self.batches.append(lengths)
        return [[Hypothesis((length,), 0.0, 0.0, (0.0,), "length")] for length in lengths]


@pytest.mark.parametrize("batch_tokens", [1, 12, 18, 10_000])
def test_results_come_in_the_order_asked(batch_tokens: int):
    spy = Spy()
    results = decode_sorted(spy, SOURCES, CONFIG, batch_tokens=batch_tokens)
    assert [found[0].token_ids[0] for found in results] == [len(ids) for ids in SOURCES]
    lengths = [length for batch in spy.batches for length in batch]
    assert lengths == sorted(lengths, reverse=True)
    for batch in spy.batches:
        assert len(batch) * max(batch) * CONFIG.beam <= batch_tokens or len(batch) == 1


class Small(Spy):
    """Memory for so many positions."""

    def __init__(self, num_positions: int, error: Exception) -> None:
        super().__init__()
        self._num_positions, self._error = num_positions, error

    def decode(self, sources: Sources, *args: Any, **kwargs: Any) -> list[list[Hypothesis]]:
        lengths = as_inputs(sources).num_positions
        if len(lengths) * lengths.max() > self._num_positions:
            raise self._error
        return super().decode(sources, *args, **kwargs)


EXHAUSTED = [
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes"),
    ResourceError("model.onnx: out of memory; use smaller batches: --batch-tokens"),
]


@pytest.mark.parametrize("error", EXHAUSTED, ids=lambda error: type(error).__name__)
def test_batches_that_memory_does_not_hold_are_halved(error: Exception):
    small, large = Small(8, error), Spy()
    assert decode_sorted(small, SOURCES, CONFIG) == decode_sorted(large, SOURCES, CONFIG)
    assert len(large.batches) == 1
    assert [len(batch) for batch in small.batches] == [1, 1, 1, 2, 2]


def test_halved_batches_are_as_large_as_memory_allows():
    small = Small(18, MemoryError())
    sources = [np.arange(4, 10)] * 12
    decode_sorted(small, sources, CONFIG)
    assert [len(batch) for batch in small.batches] == [3, 3, 3, 3]


def test_a_source_that_memory_does_not_hold_is_one_line():
    with pytest.raises(ResourceError, match="out of memory: it does not hold one source of 6 positions; shorten it"):
        decode_sorted(Small(5, MemoryError()), SOURCES, CONFIG)
    with pytest.raises(RuntimeError, match="another"):
        decode_sorted(Small(5, RuntimeError("another")), SOURCES, CONFIG)


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


SAMPLING = SearchConfig(method="sampling", beam=1, nbest=3, max_length_offset=5)


def test_no_batch_and_no_window_changes_a_sample():
    backend = Stepwise("toy", lambda with_weights: Toy(seed=3, vocab_size=9), max_length=30)
    wanted = search(Toy(seed=3, vocab_size=9), SOURCES, SAMPLING, max_length=30)
    for batch_tokens in (1, 20, 10_000):
        assert decode_sorted(backend, SOURCES, SAMPLING, batch_tokens=batch_tokens) == wanted
    windows = [decode_sorted(backend, SOURCES[at : at + 3], SAMPLING, first_index=at) for at in (0, 3, 6)]
    assert [found for window in windows for found in window] == wanted
    asked = [Constraints(index=5)] + [Constraints()] * 6
    changed = decode_sorted(backend, SOURCES, SAMPLING, constraints=asked)
    assert changed[0] != wanted[0]
    assert changed[1:] == wanted[1:]


def test_demands_go_with_their_sources():
    backend = Stepwise("toy", lambda with_weights: Toy(seed=3, vocab_size=9), max_length=30)
    asked = [Constraints(prefix=(4 + place % 5,)) for place in range(len(SOURCES))]
    found = decode_sorted(backend, SOURCES, CONFIG, batch_tokens=20, constraints=asked)
    assert [hypotheses[0].token_ids[0] for hypotheses in found] == [4, 5, 6, 7, 8, 4, 5]
    assert found == search(Toy(seed=3, vocab_size=9), SOURCES, CONFIG, max_length=30, constraints=asked)


def test_batches_count_the_hypotheses_carried():
    spy = Spy()
    decode_sorted(spy, SOURCES, SAMPLING, batch_tokens=36)
    assert spy.batches == [[6, 5], [4, 3, 2], [2, 1]]
    assert [constraints.index for constraints in spy.constraints] == [2, 5, 0, 6, 3, 4, 1]


def test_a_backend_is_not_bothered_with_demands_that_nobody_makes():
    spy = Spy()
    decode_sorted(spy, SOURCES, CONFIG)
    assert spy.constraints == []
    decode_sorted(spy, SOURCES, CONFIG, constraints=[Constraints()] * len(SOURCES))
    assert len(spy.constraints) == len(SOURCES)


def test_demands_that_a_backend_cannot_meet_are_refused():
    with pytest.raises(UsageError, match="spy: prefixes and phrases are not supported here"):
        decode_sorted(Spy(), SOURCES[:2], CONFIG, constraints=[Constraints(), Constraints(required=[(4,)])])
    with pytest.raises(UsageError, match="constraints: 1 given for 7 sources"):
        decode_sorted(Spy(), SOURCES, CONFIG, constraints=[Constraints()])
    stepwise = Stepwise("toy", lambda with_weights: Toy(), max_length=9)
    assert stepwise.supports_constraints(Constraints(prefix=(4,), required=[(4,)], banned=[(5,)])) is None


def test_stepwise_reads_outputs_that_are_given():
    backend = Stepwise("toy", lambda with_weights: Toy(seed=3), max_length=30)
    outputs = [(4, 5, EOS)] * len(SOURCES)
    wanted = score_outputs(Toy(seed=3), SOURCES, outputs)
    for one, other in zip(wanted, backend.score(SOURCES, outputs), strict=True):
        assert np.array_equal(one.log_probs, other.log_probs)


def test_a_backend_that_cannot_read_says_so():
    with pytest.raises(UsageError, match="spy: given outputs cannot be scored here"):
        Spy().score(SOURCES, [(4,)] * len(SOURCES))
