"""Term offers: random terms of training sources, the same after a resume and other ones in each epoch."""

import numpy as np
import pytest

from heedful.data.batching import PairBatch, PairSampler
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.mixing import MixedSampler
from heedful.data.random_changes import RandomChanges
from heedful.data.resegmentation import Resegmentation
from heedful.data.term_offers import HIDDEN, MOST_TERMS, TermOffers
from heedful.text.inline_terms import MARK
from heedful.text.vocabulary import UNK

NUM_PAIRS = 60
SOURCES = [[10 + i % 7] * (6 + i % 5) + [3] for i in range(NUM_PAIRS)]
FIELDS = [0, 1, 1, 1, 3, 2, 2, 4, 1, 4, 5, 1, 5, 6, 1]
"""Five terms, of which the second and the third overlap."""
TARGETS = [20, 30, 31, 40, 50, 60]
CORPUS = EncodedCorpus(EncodedSide.of(SOURCES), EncodedSide.of(SOURCES))
TERMS = EncodedCorpus(EncodedSide.of([FIELDS] * NUM_PAIRS), EncodedSide.of([TARGETS] * NUM_PAIRS))
STARTS = {1: 0, 3: 1, 4: 2, 5: 4, 6: 5}
"""First token of each term, by the place behind it."""
INLINE = {1: [20], 3: [30, 31], 4: [40], 5: [50], 6: [60]}


def plain(ids: list[int]) -> tuple[list[int], dict[int, list[int]]]:
    """Source without its terms, and the terms by their places."""
    source, terms = list[int](), dict[int, list[int]]()
    is_term = False
    for token in ids:
        if token == MARK:
            is_term = not is_term
            if is_term:
                assert len(source) not in terms
                terms[len(source)] = []
        elif is_term:
            terms[len(source)].append(token)
        else:
            source.append(token)
    return source, terms


def offered(share: float, longest: int = 100, num_rounds: int = 20) -> list[dict[int, list[int]]]:
    offers, indices = TermOffers(TERMS, share, longest), np.arange(NUM_PAIRS)
    drawn: list[dict[int, list[int]]] = []
    for seed in range(num_rounds):
        rows = offers(indices, [CORPUS.source[i] for i in range(NUM_PAIRS)], np.random.default_rng(seed))
        for row, source in zip(rows, SOURCES, strict=True):
            text, terms = plain(row.tolist())
            assert all(token in (one, UNK) for token, one in zip(text, source, strict=True))
            drawn.append(terms)
    return drawn


def test_none_all_or_some_sources_get_terms():
    assert not any(offered(0.0))
    assert all(offered(1.0))
    assert np.mean([bool(terms) for terms in offered(0.3)]) == pytest.approx(0.3, abs=0.04)


def test_terms_are_those_of_the_pair_and_do_not_overlap():
    drawn = offered(1.0)
    assert all(INLINE[place] == words for terms in drawn for place, words in terms.items())
    assert not any({3, 4} <= terms.keys() for terms in drawn)
    assert {len(terms) for terms in drawn} == set(range(1, MOST_TERMS + 1))
    assert {place for terms in drawn for place in terms} == INLINE.keys()


def test_source_words_of_half_of_the_terms_are_hidden():
    offers, indices = TermOffers(TERMS, 1.0, 100), np.arange(NUM_PAIRS)
    flags = list[bool]()
    for row in offers(indices, [CORPUS.source[i] for i in range(NUM_PAIRS)], np.random.default_rng(1)):
        text, terms = plain(row.tolist())
        spans = [range(STARTS[place], place) for place in terms]
        hidden = [any(text[index] == UNK for index in span) for span in spans]
        wanted = {index for span, is_hidden in zip(spans, hidden, strict=True) if is_hidden for index in span}
        assert {index for index, token in enumerate(text) if token == UNK} == wanted
        flags += hidden
    assert np.mean(flags) == pytest.approx(HIDDEN, abs=0.1)


def test_no_source_grows_beyond_the_longest():
    drawn = offered(1.0, longest=11)
    assert any(drawn)
    assert all(len(SOURCES[i % NUM_PAIRS]) + sum(2 + len(one) for one in terms.values()) <= 11 or not terms
               for i, terms in enumerate(drawn))  # fmt: skip


def sampler(share: float = 0.5) -> PairSampler:
    splits = np.zeros((64, 2), dtype=np.int32)
    splits[20] = splits[12] = 5, 6
    resegmentation = Resegmentation(splits, 0.3, 100)
    return PairSampler(CORPUS, 60, 5, RandomChanges((resegmentation, resegmentation), TermOffers(TERMS, share, 100)))


def walked(until_epoch: int) -> tuple[list[PairBatch], list[tuple[int, int]]]:
    whole = sampler()
    batches, positions = list[PairBatch](), list[tuple[int, int]]()
    for batch in whole:
        batches.append(batch)
        positions.append(whole.position)
        if whole.position.epoch == until_epoch:
            return batches, positions
    raise AssertionError


def test_a_resumed_training_draws_the_same_terms_and_each_epoch_others():
    batches, positions = walked(2)
    for start in (1, len(batches) // 3, len(batches) - 2):
        later = sampler()
        later.position = type(later.position)(*positions[start - 1])
        for expected, batch in zip(batches[start:], later, strict=False):
            for one, other in zip(expected.arrays(), batch.arrays(), strict=True):
                np.testing.assert_array_equal(one, other)
    sums = [
        sum(int(b.source.sum()) for b, p in zip(batches, positions, strict=True) if p[0] == epoch) for epoch in (0, 1)
    ]
    assert sums[0] != sums[1]


def test_targets_have_no_terms():
    assert not any((batch.target_out == MARK).any() for batch in walked(1)[0])
    assert any((batch.source == MARK).any() for batch in walked(1)[0])


def test_older_pairs_that_are_mixed_in_get_none():
    older = EncodedCorpus(EncodedSide.of([[60] * 8 + [3]] * 50), EncodedSide.of([[60] * 8 + [3]] * 50))
    mixed = MixedSampler(CORPUS, older, 0.4, 60, 5, RandomChanges(terms=TermOffers(TERMS, 1.0, 100)))
    num_old = num_new = 0
    for batch in mixed:
        if mixed.position.epoch:
            break
        for row in batch.source:
            is_old = row[0] == 60
            assert (MARK in row) != is_old
            num_old += is_old
            num_new += not is_old
    assert (num_old, num_new) == (40, 60)
