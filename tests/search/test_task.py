import numpy as np
import pytest

from heedful.search.config import SearchConfig
from heedful.search.live import Live
from heedful.search.task import Task, caps
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
    assert caps(np.array([length]), config, max_length).tolist() == [expected]


def test_sources_are_padded_and_their_end_mark_does_not_count() -> None:
    config = SearchConfig(max_length_ratio=1.0, max_length_offset=0)
    sources = [np.array([4, 5, 6, EOS]), np.array([4, 5, 6]), np.array([], dtype=np.int64)]
    task = Task.of(sources, config, 99, False, None)
    assert task.source.tolist() == [[4, 5, 6, EOS], [4, 5, 6, PAD], [EOS, PAD, PAD, PAD]]
    assert task.source_lengths.tolist() == [4, 3, 1]
    assert task.caps.tolist() == [3, 3, 1]
    assert task.source.dtype == task.source_lengths.dtype == np.int64


def test_a_prefix_makes_room_for_one_token_more() -> None:
    config = SearchConfig(max_length_ratio=0.0, max_length_offset=2)
    task = Task.of([np.array([4, EOS])] * 3, config, 5, False, [(4,), (4, 5, 6, 4), ()])
    assert task.caps.tolist() == [2, 5, 2]
    live = Live.start(3, config)
    assert [task.forced(live, step).tolist() for step in range(5)] == [
        [4, 4, -1],
        [-1, 5, -1],
        [-1, 6, -1],
        [-1, 4, -1],
        [-1, -1, -1],
    ]
    assert task.forced(live.select(np.array([1])), 1).tolist() == [5]


def test_bans() -> None:
    source = [np.array([4, EOS])]
    task = Task.of(source, SearchConfig(min_length=2), 9, False, None)
    assert [set(task.adjust(step).banned.tolist()) for step in range(3)] == [
        {PAD, BOS, EOS},
        {PAD, BOS, EOS},
        {PAD, BOS},
    ]
    task = Task.of(source, SearchConfig(forbid_unknown=True), 9, False, None)
    assert set(task.adjust(0).banned.tolist()) == {PAD, BOS, UNK}
