"""Files of summaries are told from other pairs, and measured."""

from pathlib import Path

from heedful.data.corpus import find_pairs
from heedful.evaluation.summaries import longest_summary


def test_the_longest_summary_is_measured(tmp_path: Path):
    path = tmp_path / "a.tsv"
    rows = [" ".join(f"word{(n * m) % 90}" for m in range(200)) for n in range(30)]
    path.write_text("".join(f"{row}\t{row[:50]}\n" for row in rows))
    assert longest_summary(find_pairs([path])) == 50
    path.write_text("".join(f"{row}\t{row.upper()}\n" for row in rows))
    assert longest_summary(find_pairs([path])) == 0
