import numpy as np
import pytest

from heedful.errors import UsageError
from heedful.search.array_scores import ArrayScores
from heedful.search.beam_state import BeamState
from heedful.search.config import SearchConfig
from heedful.search.constraints import Constraints
from heedful.search.search_state import SearchState, max_lengths
from heedful.text.vocabulary import BOS, EOS, PAD, UNK


@pytest.mark.parametrize(
    ("length", "ratio", "offset", "max_length", "expected"),
    [
        (9, 2.0, 5, 100, 23),
        (10, 2.0, 5, 25, 25),
        (10, 2.0, 5, 24, 24),
        (3, 1.5, 0, 100, 4),
        (0, 3.0, 50, 100, 50),
        (0, 3.0, 0, 100, 1),
        (7, 0.0, 0, 100, 1),
        (10**9, 1000.0, 1_000_000, 512, 512),
    ],
)
def test_caps(length: int, ratio: float, offset: int, max_length: int, expected: int) -> None:
    config = SearchConfig(max_length_ratio=ratio, max_length_offset=offset)
    assert max_lengths(np.array([length]), config, max_length).tolist() == [expected]


def test_sources_are_padded_and_their_end_mark_does_not_count() -> None:
    config = SearchConfig(max_length_ratio=1.0, max_length_offset=0)
    sources = [np.array([4, 5, 6, EOS]), np.array([4, 5, 6]), np.array([], dtype=np.int64)]
    search_state = SearchState.of(sources, config, 99, False, None)
    source, lengths = search_state.inputs.named_arrays().values()
    assert source.tolist() == [[4, 5, 6, EOS], [4, 5, 6, PAD], [EOS, PAD, PAD, PAD]]
    assert search_state.num_positions.tolist() == lengths.tolist() == [4, 3, 1]
    assert search_state.max_lengths.tolist() == [3, 3, 1]
    assert source.dtype == lengths.dtype == np.int64


def test_a_prefix_makes_room_for_one_token_more() -> None:
    config = SearchConfig(max_length_ratio=0.0, max_length_offset=2)
    search_state = SearchState.of([np.array([4, EOS])] * 3, config, 5, False, [(4,), (4, 5, 6, 4), ()])
    assert search_state.max_lengths.tolist() == [2, 5, 2]
    beam_state = BeamState.start(3, config)
    assert [search_state.forced(beam_state, step).tolist() for step in range(5)] == [
        [4, 4, -1],
        [-1, 5, -1],
        [-1, 6, -1],
        [-1, 4, -1],
        [-1, -1, -1],
    ]
    assert search_state.forced(beam_state.select(np.array([1])), 1).tolist() == [5]


def test_bans() -> None:
    source = [np.array([4, EOS])]
    search_state = SearchState.of(source, SearchConfig(min_length=2), 9, False, None)
    assert [set(search_state.adjust(step).banned.tolist()) for step in range(3)] == [
        {PAD, BOS, EOS},
        {PAD, BOS, EOS},
        {PAD, BOS},
    ]
    search_state = SearchState.of(source, SearchConfig(forbid_unknown=True), 9, False, None)
    assert set(search_state.adjust(0).banned.tolist()) == {PAD, BOS, UNK}


def test_demands_are_laid_out_for_each_source() -> None:
    constraints = [
        Constraints(prefix=(4,), required=[(5, 6), (6,), (7,)], banned=[(8,), (9, 9)]),
        Constraints(banned=[(8,), (4,)], index=40),
    ]
    search_state = SearchState.of(
        [np.array([EOS])] * 2, SearchConfig(max_length_offset=1), 99, False, None, constraints
    )
    assert search_state.required_ids.tolist() == [[5, 6, 7], [-1, -1, -1]]
    assert search_state.required.lengths.tolist() == [[2, 1], [0, 0]]
    assert search_state.banned.lengths.tolist() == [[2], [1]]
    assert search_state.banned_ids.tolist() == [8]
    assert search_state.need_gaps.tolist() == [True, False]
    assert search_state.num_phrase_ids == 5
    assert search_state.max_lengths.tolist() == [1 + 3 + 2 + 1, 1]
    assert search_state.indices.tolist() == [0, 40]
    free = SearchState.of([np.array([EOS])], SearchConfig(), 99, False, None)
    assert (free.required_ids.size, free.num_phrase_ids, free.banned.lengths.shape) == (0, 0, (1, 0))


def test_the_vocabulary_is_asked_for_only_where_tokens_are_named() -> None:
    class Secret(ArrayScores):
        @property
        def vocab_size(self) -> int:
            raise AssertionError("asked for")

    scores = Secret(np.zeros((1, 1, 5)))
    SearchState.of([np.array([EOS])], SearchConfig(), 9, False, None).check_vocabulary(scores)
    with pytest.raises(AssertionError, match="asked for"):
        SearchState.of([np.array([EOS])], SearchConfig(), 9, False, [(4,)]).check_vocabulary(scores)
    with pytest.raises(UsageError, match="token 5 is not in the vocabulary of 5"):
        SearchState.of([np.array([EOS])], SearchConfig(), 9, False, [(5,)]).check_vocabulary(
            ArrayScores(np.zeros((1, 1, 5)))
        )
