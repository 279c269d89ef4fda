"""Engines side by side: the same steps, the same searches."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful.search.config import SearchConfig
from heedful.search.inputs import TokenArrays
from heedful.search.interface import Engine, Hypothesis
from heedful.text.vocabulary import BOS, EOS
from tests.models.tiny import NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS

TOLERANCE = 1e-5
"""Nats; log probabilities here are down to -30, in float32."""

SEARCHES = {
    "greedy": SearchConfig(beam=1),
    "beam": SearchConfig(beam=4, nbest=4),
    "certain": SearchConfig(beam=3, nbest=2, stopping="certain", max_length_ratio=1.0, max_length_offset=3),
    "no repeats": SearchConfig(beam=3, no_repeat_ngram_size=2, repetition_penalty=1.5, forbid_unknown=True),
    "groups": SearchConfig(beam=4, nbest=4, num_groups=2, diversity=0.7),
    "coverage": SearchConfig(beam=3, beta=0.2, length_penalty="gnmt"),
    "samples": SearchConfig(method="sampling", beam=1, nbest=3, top_k=5),
}


class Sizes(NamedTuple):
    """Of a run of steps; none of them is that of the example that graphs are recorded with."""

    sources: int
    hypotheses: int
    positions: int
    steps: int


SIZES = (Sizes(1, 1, 1, 4), Sizes(2, 3, 9, 6), Sizes(6, 2, 4, 13), Sizes(8, 4, 12, 5))


def draw_sources(num: int, most: int, seed: int = 0) -> list[NDArray[np.int64]]:
    """Sources of random lengths up to `most`, one of them as long, each ending in EOS."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, most + 1, num)
    lengths[num // 2] = most
    return [np.append(generator.integers(4, NUM_SOURCE_TOKENS, length - 1), EOS) for length in lengths]


def largest_difference(
    one: Engine, other: Engine, sizes: Sizes, with_weights: bool, num_tokens: int = NUM_TARGET_TOKENS
) -> float:
    """Between what both say, over steps that reorder hypotheses and drop sources on the way."""
    generator = np.random.default_rng(sum(sizes))
    inputs = TokenArrays(draw_sources(sizes.sources, sizes.positions, seed=sizes.steps))
    engines = one, other
    states = [engine.start(inputs, sizes.hypotheses) for engine in engines]
    num, parents, keep = sizes.sources, None, None
    tokens = np.full((num, sizes.hypotheses), BOS)
    worst = 0.0
    for step in range(sizes.steps):
        done = [engine.step(state, tokens, parents, keep) for engine, state in zip(engines, states, strict=True)]
        states = [state for _, state in done]
        first, second = (scores for scores, _ in done)
        assert first.full().shape == second.full().shape == (num, sizes.hypotheses, num_tokens)
        worst = max(worst, float(np.abs(first.full() - second.full()).max()))
        if with_weights:
            assert second.weights.dtype == np.float32
            worst = max(worst, float(np.abs(first.weights - second.weights).max()))
        keep = None
        if step in {1, 3} and num > 1:
            keep = np.delete(np.arange(num), step % num)
            num -= 1
        parents = None if step == 2 else generator.integers(0, sizes.hypotheses, (num, sizes.hypotheses))
        tokens = generator.integers(4, NUM_TARGET_TOKENS, (num, sizes.hypotheses))
    return worst


def assert_same(one: list[list[Hypothesis]], other: list[list[Hypothesis]]) -> None:
    assert [[each.token_ids for each in found] for found in one] == [
        [each.token_ids for each in found] for found in other
    ]
    for wanted, got in zip(
        (each for found in one for each in found), (e for found in other for e in found), strict=True
    ):
        assert wanted.finish_reason == got.finish_reason
        assert got.token_log_probs == pytest.approx(wanted.token_log_probs, abs=1e-4)
        if wanted.weights is not None:
            assert got.weights is not None
            assert np.abs(wanted.weights - got.weights).max() <= TOLERANCE
