import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heedful.search.array_scores import ArrayScores
from heedful.search.interface import Adjust
from heedful.search.listed_scores import ListedScores

VOCAB_SIZE = 11


@given(st.data())
def test_scores_of_listed_tokens_are_those_of_a_vocabulary_whose_other_tokens_are_impossible(data: st.DataObject):
    ids = st.integers(0, VOCAB_SIZE - 1)
    listed = np.array(sorted(data.draw(st.sets(ids, min_size=1))))
    log_probs = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=(2, 3, len(listed)))
    whole = np.full((2, 3, VOCAB_SIZE), -np.inf)
    whole[..., listed] = log_probs
    scores, expected = ListedScores(ArrayScores(log_probs), listed, VOCAB_SIZE), ArrayScores(whole)
    assert scores.vocab_size == expected.vocab_size == VOCAB_SIZE
    np.testing.assert_array_equal(scores.full(), whole)
    places = np.array(data.draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), ids), unique=True)))
    places = places.reshape(-1, 3).astype(np.int64).T
    np.testing.assert_array_equal(scores.of(*places), expected.of(*places))
    banned = np.array(sorted(data.draw(st.sets(ids))), dtype=np.int64)
    adjust = Adjust(banned, *places, np.linspace(-2.0, 1.0, places.shape[1]))
    for change in (None, adjust):
        k = data.draw(st.integers(1, VOCAB_SIZE))
        values, tokens = scores.top(k, change)
        expected_values, expected_tokens = expected.top(k, change)
        # Where fewer than k tokens are possible, the impossible ones come in any order, or not at all.
        possible = int(np.isfinite(expected_values).sum(axis=-1).max())
        np.testing.assert_array_equal(values[..., :possible], expected_values[..., :possible])
        is_possible = np.isfinite(expected_values[..., :possible])
        assert (tokens[..., :possible] == expected_tokens[..., :possible])[is_possible].all()
