"""Rank of a process among the processes of a training."""

import pytest

from heedful.errors import UsageError
from heedful.training.rank import RankInfo, rank_info


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, RankInfo(0, 1, 0)),
        ({"RANK": "3"}, RankInfo(0, 1, 0)),
        ({"RANK": "", "WORLD_SIZE": ""}, RankInfo(0, 1, 0)),
        ({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}, RankInfo(0, 1, 0)),
        ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, RankInfo(5, 8, 1)),
        ({"RANK": "1", "WORLD_SIZE": "2"}, RankInfo(1, 2, 1)),
    ],
)
def test_it_is_what_the_launcher_says(environment: dict[str, str], found: RankInfo):
    assert rank_info(environment) == found


@pytest.mark.parametrize(
    "environment",
    [
        {"RANK": "2", "WORLD_SIZE": "2"},
        {"RANK": "-1", "WORLD_SIZE": "2"},
        {"RANK": "one", "WORLD_SIZE": "2"},
        {"RANK": "0", "WORLD_SIZE": "0"},
        {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "x"},
    ],
)
def test_nonsense_is_refused(environment: dict[str, str]):
    with pytest.raises(UsageError, match=r"not a rank among several processes; start them with torchrun"):
        rank_info(environment)
