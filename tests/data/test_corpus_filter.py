"""The corpus filter leaves out what cannot be learned from, and counts every pair once."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from heedful.data.corpus_filter import FULL_REPEATS, CorpusFilter, CorpusReport
from tests.data.test_corpus import pairs_of


def test_pairs_are_left_out_and_counted():
    rows = [
        ("a", "b"),
        ("", "b"),
        ("a", " \u2028\t"),
        ("abcdef", "b"),
        ("a", "abcdef"),
        ("a", "b"),
        ("c", "c"),
        ("A", "b"),
    ]
    chosen = CorpusFilter(max_characters=5)
    assert [pair.line for pair in chosen.apply(pairs_of(rows))] == [1, 7, 8]
    report = chosen.report(["a note"])
    assert report == CorpusReport(8, 3, 2, 2, 1, 1, ("a note",))
    assert report.summary() == (
        "3 of 8 pairs kept (2 empty, 2 too long, 1 repeated left out); in 1 both sides are the same"
    )
    assert [pair.line for pair in chosen.apply(pairs_of([("c", "c"), ("c", "d")]))] == [2]
    assert chosen.report().num_duplicates == 2
    assert chosen.report().num_identical == 1


def test_repeats_are_kept_as_often_as_they_occur_up_to_a_bound():
    rows = [("og", "og")] * 208 + [("og", "Og")] * 6 + [("footer", "Fusszeile")] * 4 * FULL_REPEATS
    chosen = CorpusFilter(max_characters=100, keeps_repeats=True)
    kept = Counter((pair.source, pair.target) for pair in chosen.apply(pairs_of(rows)))
    assert kept == {("og", "og"): 208, ("og", "Og"): 6, ("footer", "Fusszeile"): 2 * FULL_REPEATS}
    assert chosen.report().summary() == (
        "814 of 1,414 pairs kept (600 repeated left out); repeated ones count as often as they occur: 811; "
        "in 208 both sides are the same"
    )


@given(
    st.lists(
        st.tuples(st.sampled_from(["", " ", "a", "b", "abc"]), st.sampled_from(["", "a", "b", "abcd"])), max_size=40
    )
)
def test_every_pair_is_counted_once(rows: list[tuple[str, str]]):
    chosen = CorpusFilter(max_characters=3)
    kept = [(pair.source, pair.target) for pair in chosen.apply(pairs_of(rows))]
    report = chosen.report()
    fit = [row for row in rows if all(side.strip() and len(side) <= 3 for side in row)]
    assert kept == list(dict.fromkeys(fit))
    assert report.num_kept == len(kept)
    left_out = report.num_empty + report.num_too_long + report.num_duplicates
    assert report.num_kept + left_out == report.num_read == len(rows)
    assert report.num_identical == sum(1 for source, target in kept if source == target)


def test_planted_duplicates_are_all_found_over_many_blocks():
    rows = [(f"source {number}", "same") for number in range(20_000)]
    rows[50::100] = rows[0::100]
    chosen = CorpusFilter(max_characters=100)
    assert sum(1 for _ in chosen.apply(pairs_of(rows))) == 19_800
    assert chosen.report().num_duplicates == 200
    assert chosen.report().summary() == "19,800 of 20,000 pairs kept (200 repeated left out)"


def test_nothing_left_out_is_said_shortly():
    assert CorpusReport(2, 2, 0, 0, 0, 0).summary() == "2 of 2 pairs kept"
