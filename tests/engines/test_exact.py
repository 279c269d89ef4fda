"""Exact results: the same bits in every batch, even from engines whose arithmetic depends on everything around."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from heedful.engines.blocks import MOST_ROWS, BlockEngine, rows_of, width_of
from heedful.engines.engine import Stepwise, decode_sorted
from heedful.engines.exact import Exact
from heedful.models.engine import torch_backend
from heedful.search.array_scores import ArrayScores
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.inputs import InputArrays, token_draw
from heedful.search.interface import Adjust, FloatArray, Hypothesis, IntArray, StepScores, WeightsArray
from heedful.text.vocabulary import EOS, PAD
from tests.models.tiny import CONFIGS, NUM_SOURCE_TOKENS, make_model
from tests.search.engines import State, Toy
from tests.thorough import sampled, thinned

BATCH_SIZES = (1, 3, 7, 64)
GREEDY = SearchConfig(beam=1, max_length_offset=4, max_length_ratio=1.0)
BEAM = SearchConfig(beam=2, nbest=2, max_length_offset=4, max_length_ratio=1.0)
VOCAB_SIZE = 8


@dataclass
class Running:
    """A toy's state, and what the last bits of a step depend on beside it."""

    inner: State
    shapes: dict[str, int]


@dataclass
class Touchy:
    """An engine whose last bits depend on things of its batch that should not matter."""

    kinds: tuple[str, ...]
    toy: Toy = field(default_factory=lambda: TOY)
    shapes: set[tuple[int, ...]] = field(default_factory=set)

    def start(self, inputs: InputArrays, num_hypotheses: int) -> Running:
        source, source_lengths = inputs.named_arrays().values()
        assert (source[np.arange(source.shape[1]) >= source_lengths[:, None]] == PAD).all()
        self.shapes.add((*source.shape, num_hypotheses))
        shapes = {"rows": len(source), "width": source.shape[1], "longest": int(source_lengths.max())}
        shapes["neighbours"] = int(source.sum())
        return Running(self.toy.start(inputs.take(range(len(inputs))), num_hypotheses), shapes)

    def step(
        self, state: object, tokens: IntArray, parents: IntArray | None, keep: IntArray | None
    ) -> tuple[StepScores, Running]:
        assert isinstance(state, Running)
        is_all = keep is not None and keep.size == len(state.inner.sources)
        scores, inner = self.toy.step(state.inner, tokens, parents, None if is_all else keep)
        seen = state.shapes | {"parents": int(parents is None), "tokens": int(tokens.sum())}
        seen["live"] = len(tokens)
        noise = np.zeros(len(tokens)) + sum(seen[kind] for kind in self.kinds if kind not in ("place", "k"))
        if "place" in self.kinds:
            noise += np.arange(len(tokens))
        log_probs = scores.full() + 1e-12 * noise[:, None, None]
        return TouchyScores(log_probs, scores.weights, "k" in self.kinds), Running(inner, state.shapes)


class TouchyScores(StepScores):
    """Scores that may depend on how many are asked for."""

    def __init__(self, log_probs: FloatArray, weights: WeightsArray, minds_number: bool) -> None:
        self._scores = ArrayScores(log_probs, weights)
        self._minds_number = minds_number

    def top(self, k: int, adjust: Adjust | None = None) -> tuple[FloatArray, IntArray]:
        values, ids = self._scores.top(k, adjust)
        return values + (1e-12 * k if self._minds_number else 0.0), ids

    def full(self) -> FloatArray:
        return self._scores.full().astype(np.float64)

    @property
    def weights(self) -> WeightsArray:
        return self._scores.weights


def _ending(logits: FloatArray, source: tuple[int, ...], prefix: tuple[int, ...]) -> None:
    logits[EOS] += 0.7 * (len(prefix) - len(source)) + 1.0


TOY = Toy(vocab_size=VOCAB_SIZE, edit=_ending)
"""One for all tests: it remembers what it has drawn."""


def draw(number: int, longest: int = 19, num_tokens: int = VOCAB_SIZE) -> list[IntArray]:
    generator = np.random.default_rng(3)
    lengths = generator.integers(0, longest, number)
    return [np.append(generator.integers(4, num_tokens, length), EOS).astype(np.int64) for length in lengths]


def bits(found: Sequence[Hypothesis]) -> list[object]:
    """All of the hypotheses of a source, for comparing."""
    return [
        (
            one.token_ids,
            one.log_prob.hex(),
            one.score.hex(),
            np.array(one.token_log_probs).tobytes(),
            one.finish_reason,
            None if one.weights is None else one.weights.tobytes(),
        )
        for one in found
    ]


def in_batches(
    backend: Stepwise | Exact,
    sources: list[IntArray],
    config: SearchConfig,
    size: int,
    order: Sequence[int],
    need_alignment: bool = False,
    constraints: list[Constraints] | None = None,
) -> list[list[object]]:
    """What each source gives, decoded in batches of a size in an order."""
    found: dict[int, list[object]] = {}
    for start in range(0, len(sources), size):
        places = [*order[start : start + size]]
        asked = None if constraints is None else [constraints[place] for place in places]
        done = decode_sorted(
            backend, [sources[place] for place in places], config, need_alignment=need_alignment, constraints=asked
        )
        found.update(zip(places, map(bits, done), strict=True))
    return [found[place] for place in range(len(sources))]


def orders(number: int) -> list[list[int]]:
    """In order, and shuffled."""
    generator = np.random.default_rng(number)
    return [list(range(number)), *(generator.permutation(number).tolist() for _ in BATCH_SIZES[1:])]


def exact(engine: Touchy) -> Exact:
    return Exact(Stepwise("touchy", lambda _: engine, 30), token_draw(VOCAB_SIZE))


def test_widths_are_few_and_no_narrower_than_what_they_hold():
    for most in (5, 100, 250, 4000):
        widths = [width_of(length, most) for length in range(1, most + 1)]
        assert all(length <= width <= most for length, width in enumerate(widths, start=1))
        assert widths == sorted(widths)
        assert len(set(widths)) <= 16 + 8 * max(0, most.bit_length() - 7)
    assert width_of(77, 40) == 77


def test_blocks_shrink_with_what_a_row_costs():
    assert rows_of(8, 1) == MOST_ROWS
    assert [rows_of(width, 5) for width in (32, 64, 128, 512, 10_000)] == [16, 8, 4, 1, 1]


@sampled(3)
@pytest.mark.parametrize("kind", ["rows", "live", "width", "longest", "parents"])
@pytest.mark.parametrize("config", [GREEDY, BEAM], ids=["greedy", "beam"])
def test_shapes_of_the_batch_change_no_bit(kind: str, config: SearchConfig):
    engine = Touchy((kind,))
    backend, sources = exact(engine), draw(22)
    expected = in_batches(backend, sources, config, 64, range(22))
    for size, order in zip(BATCH_SIZES, orders(22), strict=True):
        assert in_batches(backend, sources, config, size, order) == expected
    assert max(shape[0] for shape in engine.shapes) >= 16


@pytest.mark.parametrize("kind", ["place", "neighbours", "tokens"])
def test_where_a_row_is_not_alone_blocks_have_one(kind: str):
    engine = Touchy((kind,))
    backend, sources = exact(engine), draw(12)
    expected = in_batches(backend, sources, BEAM, 64, range(12))
    engine.shapes.clear()
    for size, order in zip(BATCH_SIZES, orders(12), strict=True):
        assert in_batches(backend, sources, BEAM, size, order) == expected
    assert {shape[0] for shape in engine.shapes} == {1}


@pytest.mark.parametrize("kind", ["rows", "width", "longest", "place", "neighbours", "tokens"])
def test_without_it_they_do_change(kind: str):
    sources = draw(22)
    backend = Stepwise("touchy", lambda _: Touchy((kind,)), 30)
    assert in_batches(backend, sources, BEAM, 64, range(22)) != in_batches(backend, sources, BEAM, 3, range(22))


def test_results_are_those_of_the_plain_search():
    sources = draw(22)
    plain = Stepwise("touchy", lambda _: Touchy(()), 30)
    for config in (GREEDY, BEAM, SearchConfig(method="sampling", beam=1, nbest=3, max_length_ratio=1.0)):
        found = in_batches(exact(Touchy(())), sources, config, 64, range(22), need_alignment=True)
        assert found == in_batches(plain, sources, config, 64, range(22), need_alignment=True)


def test_phrases_of_others_change_no_bit():
    sources = draw(12)
    constraints = [Constraints(required=[(4,), (5, 6)][: place % 3], prefix=(7,) * (place % 2)) for place in range(12)]
    backend = exact(Touchy(("k", "rows")))
    expected = in_batches(backend, sources, BEAM, 64, range(12), constraints=constraints)
    for size, order in zip(BATCH_SIZES, orders(12), strict=True):
        assert in_batches(backend, sources, BEAM, size, order, constraints=constraints) == expected


def test_readings_are_exact_too():
    sources = draw(12)
    generator = np.random.default_rng(5)
    outputs = [[*generator.integers(4, VOCAB_SIZE, place % 5).tolist(), EOS] for place in range(12)]
    backend = exact(Touchy(("rows", "width", "longest")))
    whole = backend.score(sources, outputs, need_alignment=True)
    for place, (ids, output) in enumerate(zip(sources, outputs, strict=True)):
        (alone,) = backend.score([ids], [output], need_alignment=True)
        assert alone.log_probs.tobytes() == whole[place].log_probs.tobytes()
        assert alone.weights is not None
        assert whole[place].weights is not None
        assert alone.weights.tobytes() == whole[place].weights.tobytes()


def test_nothing_to_decode_is_nothing():
    backend = exact(Touchy(("rows",)))
    assert backend.decode([], BEAM) == []
    assert backend.score([], []) == []


def test_blocks_know_their_own_states_only():
    with pytest.raises(TypeError, match="got a state of type int"):
        BlockEngine(Touchy(()), 8, lambda rows: rows).step(3, np.zeros((1, 1), dtype=np.int64), None, None)


@sampled(3)
@pytest.mark.parametrize(
    ("name", "has_sentences"),
    [*thinned(((name, False) for name in CONFIGS), 4), ("luong-sentences", True), ("rnnsearch-sentences", True)],
)
def test_every_model_in_pytorch(name: str, has_sentences: bool):
    model = make_model(name).float()
    sources = draw(8, 11, NUM_SOURCE_TOKENS)
    if has_sentences:
        for source in sources[::2]:
            source[len(source) // 2 :: 2] = EOS
            source[-1] = EOS
    config = SearchConfig(beam=3, nbest=2, max_length_offset=4, max_length_ratio=0.5)
    has_attention = bool(model.alignment)
    backend = Exact(torch_backend(model, 16), token_draw(NUM_SOURCE_TOKENS))
    expected = in_batches(backend, sources, config, 8, range(8), has_attention)
    for size, order in zip((1, 8), orders(8), strict=False):
        assert in_batches(backend, sources, config, size, order, has_attention) == expected
    plain = decode_sorted(torch_backend(model, 16), sources, config)
    found = decode_sorted(backend, sources, config)
    for one, other in zip(plain, found, strict=True):
        assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-4)
