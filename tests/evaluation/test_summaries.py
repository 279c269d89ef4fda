"""Files of summaries are told from other pairs, and measured."""

import csv
from pathlib import Path

import pytest

from heedful.data.corpus import find_pairs
from heedful.evaluation.summaries import longest_summary


def test_the_longest_summary_is_measured(tmp_path: Path):
    path = tmp_path / "a.tsv"
    rows = [" ".join(f"word{(n * m) % 90}" for m in range(200)) for n in range(30)]
    path.write_text("".join(f"{row}\t{row[:50]}\n" for row in rows))
    assert longest_summary(find_pairs([path])) == 50
    path.write_text("".join(f"{row}\t{row.upper()}\n" for row in rows))
    assert longest_summary(find_pairs([path])) == 0


def write_unlike(path: Path, headings: tuple[str, ...], num_words: int, num_targets: int = 12) -> Path:
    """Pairs none of whose target words are in their sources."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        if headings:
            table.writerow(headings)
        for number in range(30):
            source = " ".join(f"word{(number * m) % 90}" for m in range(num_words))
            cells = (source, " ".join(f"other{(number + m) % 50}" for m in range(num_targets)))
            table.writerow((str(number), *cells) if len(headings) > 2 else cells)
    return path


@pytest.mark.parametrize(
    "headings", ["article,highlights", "id,article,highlights", "document,summary", "Text,Summary", "article,abstract"]
)
def test_headings_tell_summaries_of_other_words(tmp_path: Path, headings: str):
    assert longest_summary(find_pairs([write_unlike(tmp_path / "a.csv", (*headings.split(","),), 60)])) > 0
    assert longest_summary(find_pairs([write_unlike(tmp_path / "b.csv", (*headings.split(","),), 10, 20)])) == 0


def test_pairs_of_other_headings_are_summaries_if_most_sources_are_too_long_and_targets_short(tmp_path: Path):
    for headings in ((), ("source", "target")):
        assert longest_summary(find_pairs([write_unlike(tmp_path / "long.csv", headings, 400)])) > 0
        assert longest_summary(find_pairs([write_unlike(tmp_path / "alike.csv", headings, 400, 300)])) == 0
        assert longest_summary(find_pairs([write_unlike(tmp_path / "short.csv", headings, 200)])) == 0
