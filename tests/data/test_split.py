"""The split of a corpus, and corpora that cannot be split."""

import re
from pathlib import Path

import pytest

from heedful.data.corpus import Pair
from heedful.data.split import SourceSpread, Split
from heedful.data.split_positions import split_of
from heedful.errors import DataError


def sources_of(part: str, number: int) -> list[str]:
    """Sources that a corpus of 150 pairs has in one part."""
    candidates = (f"source {i}" for i in range(10_000))
    return [source for source in candidates if split_of(source, 0.1, 0.1) == part][:number]


def refusal(sources: list[str], split: Split) -> str:
    spread = SourceSpread()
    pairs = [Pair(source, str(line), line) for line, source in enumerate(sources)]
    assert [*spread.watch(pairs)] == pairs
    try:
        spread.check(split, Path("a.tsv"))
    except DataError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("parts", "lacking"),
    [
        (["train"], "held out for validation"),
        (["dev"], "left for training"),
        (["test"], "left for training"),
        (["dev", "test"], "left for training"),
        (["train", "test"], "held out for validation"),
        (["train", "dev"], ""),
        (["train", "dev", "test"], ""),
    ],
)
def test_what_no_split_serves_is_refused_with_the_way_out(parts: list[str], lacking: str):
    sources = [source for part in parts for source in sources_of(part, 3)] * 20
    said = refusal(sources, Split(150, has_dev=False, has_test=False))
    expected = (
        f"^a.tsv: too few different sources: no pair is {lacking}, because .*; give validation pairs: --dev FILE$"
    )
    assert re.match(expected, said) if lacking else not said
    assert not refusal(sources, Split(150, has_dev=True, has_test=False))
    assert not refusal(sources, Split(99, has_dev=False, has_test=False))


def test_large_corpora_hold_out_smaller_shares():
    sources = sources_of("dev", 400) + sources_of("train", 1)
    split = Split(1_000_000, has_dev=False, has_test=False)
    is_held_out = any(split(Pair(source, "", 1)) == "dev" for source in sources)
    assert bool(refusal(sources, split)) == (not is_held_out)
