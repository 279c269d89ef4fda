from collections.abc import Callable, Sequence

import numpy as np
import pytest

from heedful.engines.engine import Backend
from heedful.export.parity import draw_sources, measure
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.forced import ForcedDecoding
from heedful.search.inputs import Sources, token_draw, token_sequences
from heedful.search.interface import Hypothesis
from heedful.text.vocabulary import EOS


class Saying(Backend):
    """Says the source back, all tokens at -1, or something else from time to time."""

    name = "saying"

    def __init__(self, off: float = 0.0, wrong_every: int = 0, off_everywhere: float = 0.0) -> None:
        self.off = off
        self.off_everywhere = off_everywhere
        self.wrong_every = wrong_every

    def supports(self, config: SearchConfig, need_alignment: bool) -> str | None:
        return None

    def decode(
        self,
        sources: Sources,
        config: SearchConfig,
        need_alignment: bool = False,
        cancelled: Callable[[], bool] | None = None,
        constraints: Sequence[Constraints] | None = None,
    ) -> list[list[Hypothesis]]:
        found = [tuple(ids[:-1].tolist()) for ids in token_sequences(sources)]
        if self.wrong_every:
            found = [(*ids, 4) if row % self.wrong_every == 0 else ids for row, ids in enumerate(found)]
        return [[Hypothesis(ids, -1.0, -1.0, (), "eos")] for ids in found]

    def score(
        self, sources: Sources, outputs: Sequence[Sequence[int]], need_alignment: bool = False
    ) -> list[ForcedDecoding]:
        found = [np.full(len(ids), -1.0 + self.off_everywhere) for ids in outputs]
        found[-1][-1] += self.off
        return [ForcedDecoding(each) for each in found]


def test_sources_are_of_all_lengths_and_end():
    sources = token_sequences(draw_sources(token_draw(30), 100))
    lengths = [len(ids) for ids in sources]
    assert (min(lengths), max(lengths)) == (2, 100)
    assert len(set(lengths)) > 20
    assert all(ids[-1] == EOS and 4 <= ids[:-1].min() and ids.max() < 30 for ids in sources)
    again = token_sequences(draw_sources(token_draw(30), 100))
    assert all(np.array_equal(one, two) for one, two in zip(sources, again, strict=True))


@pytest.mark.parametrize("most", [1, 2, 3, 17])
def test_short_limits_are_kept(most: int):
    assert draw_sources(token_draw(9), most).width == max(2, most)


def test_what_is_the_same_is_exact():
    parity = measure(Saying(), Saying(), draw_sources(token_draw(30), 20), max_length=12)
    assert parity.is_exact
    assert (parity.max_difference, parity.num_outputs, parity.num_same) == (0.0, 48, 48)
    assert parity.num_compared >= 48


@pytest.mark.parametrize("off", [0.5, -0.002, float("nan"), -float("inf")])
def test_one_token_that_is_off_is_seen(off: float):
    parity = measure(Saying(), Saying(off), draw_sources(token_draw(30), 20), max_length=12)
    assert not parity.is_exact
    if np.isfinite(off):
        assert parity.max_difference == pytest.approx(abs(off))


def test_outputs_that_differ_are_counted():
    assert measure(Saying(), Saying(wrong_every=4), draw_sources(token_draw(30), 20), max_length=30).num_same == 36


def test_what_rounding_decides_is_not_compared():
    """The last token of one output differs, and so it does in the reference itself in 64 bits."""
    sources = draw_sources(token_draw(30), 20)
    whole = measure(Saying(), Saying(), sources, max_length=12)
    parity = measure(Saying(), Saying(0.5), sources, 12, exact=lambda: Saying(0.3))
    assert parity.is_exact
    assert parity.num_compared == whole.num_compared - 1


@pytest.mark.parametrize(
    ("other", "exact"),
    [
        (Saying(0.5), Saying()),
        (Saying(0.5), Saying(off_everywhere=0.3)),
        (Saying(off_everywhere=0.002), Saying(0.5)),
        (Saying(float("nan")), Saying()),
    ],
)
def test_a_wrong_engine_is_seen_in_spite_of_rounding(other: Backend, exact: Backend):
    """The reference is sure, or of too little; or the engine is wrong where the reference is sure."""
    assert not measure(Saying(), other, draw_sources(token_draw(30), 20), 12, exact=lambda: exact).is_exact
