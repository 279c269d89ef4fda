"""Where a process stands among others."""

import pytest

from heedful.errors import UsageError
from heedful.training.place import Place, place


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, Place(0, 1, 0)),
        ({"RANK": "3"}, Place(0, 1, 0)),
        ({"RANK": "", "WORLD_SIZE": ""}, Place(0, 1, 0)),
        ({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}, Place(0, 1, 0)),
        ({"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, Place(5, 8, 1)),
        ({"RANK": "1", "WORLD_SIZE": "2"}, Place(1, 2, 1)),
    ],
)
def test_it_is_what_the_launcher_says(environment: dict[str, str], found: Place):
    assert place(environment) == found


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
    with pytest.raises(UsageError, match=r"not a place among several processes; start them with torchrun"):
        place(environment)
