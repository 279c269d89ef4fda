import tracemalloc
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.batching import (
    PairSampler,
    Position,
    _places_on_curve,
    cut_batches,
    make_batch,
    pad,
)
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.length_grid import ROWS, on_grid
from heedful.text.tokenizer import PieceTokenizer
from heedful.text.vocabulary import BOS, EOS, PAD
from tests.thorough import sampled


def padding_share(corpus: EncodedCorpus, batches: Sequence[np.ndarray]) -> tuple[float, float]:
    """Padded positions over all positions, on the source side and on the target side."""
    shares: list[float] = []
    for lengths in (corpus.source.lengths, corpus.target.lengths):
        positions = sum(int(lengths[batch].max()) * len(batch) for batch in batches)
        shares.append(1.0 - float(sum(int(lengths[batch].sum()) for batch in batches)) / max(1, positions))
    return shares[0], shares[1]


def of_lengths(source: np.ndarray, target: np.ndarray) -> EncodedCorpus:
    """A corpus whose every sequence holds the number of its pair."""
    sides = ([np.full(length, 4 + i) for i, length in enumerate(lengths)] for lengths in (source, target))
    return EncodedCorpus(*(EncodedSide.of(side) for side in sides))


def realistic(num: int, ratio: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lengths as of the pieces of captions: log-normal, correlated by 0.88."""
    generator = np.random.default_rng(seed)
    source = generator.lognormal(2.7, 0.35, num)
    target = source * ratio * generator.lognormal(0.0, 0.18, num)
    return tuple(np.clip(lengths.round().astype(np.int64) + 1, 1, 250) for lengths in (source, target))  # type: ignore


@settings(max_examples=100)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=80),
    budget=st.integers(1, 200),
    seed=st.integers(0, 9),
)
def test_every_pair_once_and_the_budget_kept(lengths: list[tuple[int, int]], budget: int, seed: int):
    source, target = (np.array([pair[side] for pair in lengths], dtype=np.int64) for side in (0, 1))
    batches = cut_batches(source, target, budget, np.random.default_rng(seed))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        positions = len(batch) * max(source[batch].max(), target[batch].max())
        assert positions <= budget or len(batch) == 1


def test_batches_are_as_full_as_they_can_be():
    source, target = realistic(3000)
    batches = cut_batches(source, target, 2048, np.random.default_rng(0))
    for batch, following in pairwise(batches):
        with_one_more = np.append(batch, following[0])
        positions = len(with_one_more) * max(source[with_one_more].max(), target[with_one_more].max())
        assert positions > 2048


@sampled(3)
@pytest.mark.parametrize("batch_tokens", [512, 1024, 2048, 4096])
@pytest.mark.parametrize("ratio", [1.0, 0.6, 2.5])
def test_either_side_is_padded_little(ratio: float, batch_tokens: int):
    source, target = realistic(30_000, ratio)
    corpus = of_lengths(source, target)
    for seed in range(3):
        batches = cut_batches(source, target, batch_tokens, np.random.default_rng(seed))
        # Of the shorter side of unequal ones the same number of positions is a larger share.
        assert max(padding_share(corpus, batches)) <= (0.05 if ratio == 1.0 else 0.06)


def one_side_then_the_other(source: np.ndarray, target: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """The plain way: sorted by target length, then by source length, and cut."""
    batches: list[list[int]] = [[]]
    widest = 0
    for index in np.lexsort((source, target)).tolist():
        widest = max(widest, int(source[index]), int(target[index]))
        if batches[-1] and widest * (len(batches[-1]) + 1) > batch_tokens:
            batches.append([])
            widest = max(int(source[index]), int(target[index]))
        batches[-1].append(index)
    return [np.array(batch) for batch in batches]


def test_the_curve_beats_sorting_by_one_side_and_then_the_other():
    source, target = realistic(20_000)
    corpus = of_lengths(source, target)
    batches = cut_batches(source, target, 2048, np.random.default_rng(0))
    plain = one_side_then_the_other(source, target, 2048)
    assert len(batches) <= len(plain)
    assert sum(padding_share(corpus, batches)) < sum(padding_share(corpus, plain))
    assert max(padding_share(corpus, batches)) < 0.5 * max(padding_share(corpus, plain))


@pytest.mark.parametrize("side", [1, 2, 4, 16])
def test_neighbours_on_the_curve_are_neighbours_in_the_plane(side: int):
    x, y = (part.ravel() for part in np.meshgrid(np.arange(side), np.arange(side)))
    places = _places_on_curve(x, y)
    assert sorted(places.tolist()) == list(range(side * side))
    order = np.argsort(places)
    assert (np.abs(np.diff(x[order])) + np.abs(np.diff(y[order])) == 1).all()


def test_the_share_of_padding_is_what_it_is():
    corpus = of_lengths(np.array([1, 2, 3]), np.array([5, 5, 1]))
    shares = padding_share(corpus, [np.array([0, 2]), np.array([1])])
    assert shares == (1 - 6 / 8, 1 - 11 / 15)


def test_either_side_of_a_real_corpus_is_padded_little(corpora: Path):
    names = ("train.de", "train.en")
    sides = [(corpora / "multi30k" / name).read_text(encoding="utf-8").split("\n")[:-1] for name in names]
    tokenizer = PieceTokenizer.train([*sides[0][:10_000], *sides[1][:10_000]], 8000, "NFC")
    source, target = (np.array([len(tokenizer.encode(line)) + 1 for line in side]) for side in sides)
    corpus = of_lengths(source, target)
    for batch_tokens in (2048, 4096):
        for seed in range(5):
            batches = cut_batches(source, target, batch_tokens, np.random.default_rng(seed))
            assert max(padding_share(corpus, batches)) <= 0.05


CORPUS = of_lengths(*realistic(200))


def order_of(sampler: PairSampler, num: int) -> list[list[int]]:
    drawn = iter(sampler)
    return [next(drawn).target_out[:, 0].tolist() for _ in range(num)]


def test_an_epoch_holds_every_pair_once():
    sampler = PairSampler(CORPUS, 300, seed=1)
    num = len(sampler.plan(0))
    for _ in range(3):
        drawn = Counter(pair for batch in order_of(sampler, num) for pair in batch)
        assert drawn == Counter(range(4, 204))
    assert sampler.position == Position(2, num)


def test_the_order_is_a_function_of_seed_and_epoch():
    one, other = (order_of(PairSampler(CORPUS, 300, seed=5), 60) for _ in range(2))
    assert one == other
    num = len(PairSampler(CORPUS, 300, seed=5).plan(0))
    assert one[:num] != one[num : 2 * num]
    assert order_of(PairSampler(CORPUS, 300, seed=6), num) != one[:num]


def test_plans_do_not_depend_on_what_was_asked_before():
    sampler = PairSampler(CORPUS, 300, seed=5)
    third = [batch.tolist() for batch in sampler.plan(3)]
    sampler.plan(0)
    assert [batch.tolist() for batch in sampler.plan(3)] == third
    assert [batch.tolist() for batch in PairSampler(CORPUS, 300, seed=5).plan(3)] == third


def test_pairs_meet_other_neighbours_in_another_epoch():
    source, target = realistic(5000)
    sampler = PairSampler(of_lengths(source, target), 2048, seed=0)
    batch_of = np.empty((2, 5000), dtype=np.int64)
    for epoch in range(2):
        for number, batch in enumerate(sampler.plan(epoch)):
            batch_of[epoch, batch] = number
    together = batch_of[0][:, None] == batch_of[0]
    again = together & (batch_of[1][:, None] == batch_of[1])
    assert (again.sum() - 5000) < 0.75 * (together.sum() - 5000)


def test_lengths_come_in_random_order():
    # Not short ones first: the first batches of an epoch are no easier than the last.
    sampler = PairSampler(of_lengths(*realistic(3000)), 300, seed=0)
    sizes = [len(batch) for batch in sampler.plan(0)]  # many short pairs or few long ones
    halves = np.mean(sizes[: len(sizes) // 2]), np.mean(sizes[len(sizes) // 2 :])
    assert abs(halves[0] - halves[1]) < 0.25 * halves[0]
    assert max(sizes) > 3 * min(sizes)


@pytest.mark.parametrize("start", [1, 7, 20, 45])
def test_going_on_from_a_position(start: int):
    whole = order_of(PairSampler(CORPUS, 300, seed=2), 60)
    sampler = PairSampler(CORPUS, 300, seed=2)
    order_of(sampler, start)
    again = PairSampler(CORPUS, 300, seed=2)
    again.position = sampler.position
    assert order_of(again, 60 - start) == whole[start:]


def test_a_batch_is_what_teacher_forcing_needs():
    corpus = EncodedCorpus(EncodedSide.of([[7, EOS], [8, 9, EOS]]), EncodedSide.of([[5, 6, EOS], [EOS]]))
    batch = make_batch(corpus, np.array([0, 1]))
    assert batch.source.tolist() == [[7, EOS, PAD], [8, 9, EOS]]
    assert batch.source_lengths.tolist() == [2, 3]
    assert batch.target_in.tolist() == [[BOS, 5, 6], [BOS, PAD, PAD]]
    assert batch.target_out.tolist() == [[5, 6, EOS], [EOS, PAD, PAD]]
    assert batch.target_lengths.tolist() == [3, 1]
    assert batch.num_units == 4
    parts = (batch.source, batch.source_lengths, batch.target_in, batch.target_out, batch.target_lengths)
    assert {part.dtype for part in parts} == {np.dtype(np.int64)}


def test_padding_nothing():
    rows, found = pad([])
    assert (rows.shape, found.tolist()) == ((0, 0), [])
    assert pad([np.array([], dtype=np.int64), np.array([4])])[0].tolist() == [[PAD], [4]]


def cut_plainly(
    source: np.ndarray, target: np.ndarray, batch_tokens: int, generator: np.random.Generator
) -> list[list[int]]:
    """The same walk from 64-bit numbers, without a table: what checkpoints of earlier versions count on."""
    shuffled = generator.permutation(len(source))
    source, target = source.astype(np.int64)[shuffled], target.astype(np.int64)[shuffled]
    shift = generator.integers(0, 1 + max(source.max(initial=0), target.max(initial=0)), size=2)
    order = np.argsort(_places_on_curve(source + shift[0], target + shift[1]), kind="stable")
    batches: list[list[int]] = [[]]
    for index in shuffled[order].tolist():
        held = [*batches[-1], index]
        lengths = np.maximum(*(side[np.argsort(shuffled)][held] for side in (source, target)))
        if lengths.max() * len(held) > batch_tokens and batches[-1]:
            batches.append([])
        batches[-1].append(index)
    return batches


@pytest.mark.parametrize("longest", [1, 7, 40, 400])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_walks_are_the_same_from_a_table_and_from_the_curve_itself(longest: int, dtype: type):
    random = np.random.default_rng(longest)
    source, target = (random.integers(1, longest + 1, size=300).astype(dtype) for _ in range(2))
    found = cut_batches(source, target, 4 * longest, np.random.default_rng(5))
    assert [batch.tolist() for batch in found] == cut_plainly(source, target, 4 * longest, np.random.default_rng(5))


def test_an_epoch_of_many_pairs_needs_few_bytes_a_pair():
    num = 200_000
    source, target = (np.random.default_rng(seed).integers(1, 60, size=num).astype(np.int32) for seed in (1, 2))
    tracemalloc.start()
    batches = cut_batches(source, target, 2000, np.random.default_rng(0))
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(len, batches)) == num
    assert most < 45 * num
    assert held < 12 * num


def test_links_come_with_their_row():
    source, target = (EncodedSide.of([[4, 5, 3], [6, 3], [7, 8, 9, 3]]) for _ in range(2))
    links = EncodedCorpus(EncodedSide.of([[0, 1], [], [2, 0, 1]]), EncodedSide.of([[1, 0], [], [0, 1, 2]]))
    batch = make_batch(EncodedCorpus(source, target, links), np.array([2, 1, 0]))
    assert batch.links.tolist() == [[0, 0, 2], [0, 1, 0], [0, 2, 1], [2, 1, 0], [2, 0, 1]]
    assert batch.links.dtype == np.int64
    assert make_batch(EncodedCorpus(source, target, links), np.array([1])).links.shape == (0, 3)
    assert make_batch(EncodedCorpus(source, target), np.array([2, 0])).links is None
    assert len(batch.arrays()) == len(batch.rows(slice(2)).arrays()) == 5
    assert len(make_batch(EncodedCorpus(source, target), np.array([2, 0])).arrays()) == 4


@pytest.mark.parametrize(("num_pairs", "batch_tokens"), [(20_000, 4096), (200_000, 4096)])
def test_few_shapes_come_again_in_every_epoch(num_pairs: int, batch_tokens: int):
    generator = np.random.default_rng(0)
    source = 2 + generator.poisson(12, num_pairs)
    target = np.maximum(1, source + generator.integers(-4, 5, num_pairs))

    def shapes(seed: int, has_few: bool) -> list[tuple[int, int, int]]:
        batches = cut_batches(source, target, batch_tokens, np.random.default_rng(seed), has_few)
        assert sorted(np.concatenate(batches).tolist()) == list(range(num_pairs))
        wide = [(len(each), *(int(on_grid(side[each]).max()) for side in (source, target))) for each in batches]
        assert all(rows * max(own, other) <= batch_tokens for rows, own, other in wide) or not has_few
        return wide

    first, second = shapes(1, True), shapes(2, True)
    assert first == second
    assert len({*first}) <= 80
    assert sum(rows % ROWS > 0 for rows, *_ in first) <= 1
    computed = sum(rows * (own + other) for rows, own, other in first)
    assert (source.sum() + target.sum()) / computed > 0.85
    assert len({*shapes(1, False), *shapes(2, False)}) > 1.5 * len({*first})


def test_the_pairs_of_equal_lengths_are_drawn_anew_where_shapes_are_few():
    lengths = np.full(64, 8)
    first, second = (cut_batches(lengths, lengths, 64, np.random.default_rng(seed), True) for seed in (1, 2))
    assert [len(batch) for batch in first] == [8] * 8
    assert {*map(frozenset, first)} != {*map(frozenset, second)}


@given(st.lists(st.integers(0, 1 << 40)))
def test_lengths_on_the_grid_are_few_and_not_much_longer(lengths: list[int]):
    numbers = np.array(lengths, dtype=np.int64)
    rounded = on_grid(numbers)
    assert ((numbers <= rounded) & (rounded * 4 <= numbers * 5)).all()
    assert (on_grid(rounded) == rounded).all()
    assert all(int(each).bit_length() <= 3 or int(each) % (1 << (int(each).bit_length() - 3)) == 0 for each in rounded)
