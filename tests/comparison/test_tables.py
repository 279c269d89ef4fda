"""Printed tables: every figure in its cell, as text and as Markdown."""

from heedful.comparison.summary import Comparison, summarise
from heedful.comparison.tables import length_rows, score_rows, to_markdown, to_text
from tests.comparison.made import ITEMS, by_row, make_finding


def made(num_seeds: int = 1) -> Comparison:
    runs = [
        make_finding(name, num + seed, seed)
        for seed in range(1, num_seeds + 1)
        for name, num in (("none", 20), ("a|*b*", 40))
    ]
    return summarise("A title", ITEMS, ("bleu", "chrf"), by_row(runs), "none", {"odd": "model.x: unknown key"})


def test_cells_stand_under_their_heads():
    found = made()
    head, none, other = score_rows(found)
    cells = dict(zip(head, other, strict=True))
    row = found.rows[1]
    assert row.difference is not None
    assert cells["row"] == "a|*b*"
    assert cells["BLEU"] == f"{row.scores['bleu'].mean:.2f}"
    assert cells["95 % interval"] == f"[{row.interval.low:.2f}, {row.interval.high:.2f}]"
    assert cells["difference"] == f"+{row.difference.difference:.2f}"
    assert cells["p"] == f"{row.difference.p_value:.3f}"
    assert cells["chrF2"] == f"{row.scores['chrf'].mean:.2f}"
    assert (cells["parameters"], cells["perplexity"], cells["target tokens/s"]) == ("12,345", "4.41", "121")
    assert dict(zip(head, none, strict=True))["difference"] == "-"


def test_seeds_are_shown_as_deviations_but_not_where_all_agree():
    found = made(3)
    head, _, other = score_rows(found)
    cells = dict(zip(head, other, strict=True))
    spread = found.rows[1].scores["bleu"]
    assert cells["BLEU"] == f"{spread.mean:.2f} ± {spread.deviation:.2f}"
    assert (cells["parameters"], cells["target tokens/s"]) == ("12,345", "122 ± 1")
    assert "standard deviation" in to_text(found)
    assert "±" not in to_text(made())


def test_ranges_of_lengths_have_a_column_each():
    found = made()
    head, _, other = length_rows(found)
    for title, cell, bucket in zip(head[1:], other[1:], found.rows[1].by_length, strict=True):
        assert title == f"{bucket.label} ({bucket.num_items})"
        assert cell == f"{bucket.score:.2f} [{bucket.interval.low:.2f}, {bucket.interval.high:.2f}]"
    assert len(head) == 6


def test_text_says_what_was_measured_and_what_was_not_run():
    text = to_text(made())
    assert text.startswith("A title\n\nrow ")
    assert "BLEU by source length in words (sources)\n" in text
    assert "note: 60 sources; BLEU: nrefs:1|case:mixed|eff:no|tok:13a" in text
    assert "note: not run: odd: model.x: unknown key\n" in text
    assert "paired bootstrap" in text


def test_markdown_is_a_table_whose_cells_cannot_break_it():
    text = to_markdown(made(), "heedful compare 'a b.toml'")
    lines = [line for line in text.split("\n") if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in lines[:4]}) == 1
    assert lines[1].startswith("| --- | ---: |")
    assert "a\\|\\*b\\*" in text
    assert text.startswith("# A title\n\n```sh\nheedful compare 'a b.toml'\n```\n")


def test_one_range_of_lengths_is_no_table():
    found = summarise("", ITEMS, ("bleu",), by_row([make_finding("a", 3)]), "a", {}, length_edges=(100,))
    assert length_rows(found) == []
    assert "by source length" not in to_text(found)
    assert "by source length" not in to_markdown(found, "c")
