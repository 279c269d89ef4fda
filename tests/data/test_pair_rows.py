"""Written rows of pairs are read as the same pairs."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.corpus import find_pairs
from heedful.data.pair_rows import tsv_lines

CELLS = st.text(st.sampled_from('ab ",.;{}[]語2'), min_size=1, max_size=6).filter(
    lambda cell: cell == cell.strip() != ""
)
PAIRS = {
    "plain": [("ja", "yes"), ("nein", "no")],
    "quoted": [('"Ja, bitte."', '"Yes, please."'), ("nein", "no"), ("doch", "yes")],
    "all quoted": [('"ja"', '"yes"'), ('"nein"', '"no"')],
    "one quoted": [('"ja"', '"yes"')],
    "quotes inside": [('er sagt "ja"', 'he says "yes"'), ("a,b", "c,d")],
    "headings": [("German", "English"), ("nein", "no")],
    "headings alone": [("source", "target")],
    "open quote": [('"ja', "yes"), ("nein", 'no"')],
}


def read(pairs: list[tuple[str, str]], path: Path) -> list[tuple[str, str]]:
    path.write_text("".join(tsv_lines(pairs)), encoding="utf-8")
    return [(pair.source, pair.target) for pair in find_pairs([path], (1, 2))]


@pytest.mark.parametrize("pairs", PAIRS.values(), ids=PAIRS.keys())
def test_what_is_written_is_read(pairs: list[tuple[str, str]], tmp_path: Path):
    assert read(pairs, tmp_path / "pairs.tsv") == pairs


def test_plain_pairs_stay_plain():
    assert [*tsv_lines(PAIRS["plain"])] == ["ja\tyes\n", "nein\tno\n"]
    assert [*tsv_lines([("a\tb", "c\nd")])] == ["a b\tc d\n"]
    assert [*tsv_lines([])] == []


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_whatever_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]):
    assert read(pairs, tmp_path_factory.mktemp("rows") / "pairs.tsv") == pairs
