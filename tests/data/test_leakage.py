"""Planted leaks are all found, and nothing else."""

from heedful.data.corpus import Pair
from heedful.data.leakage import Leakage, TrainingIndex, leakage


def pairs(rows: list[tuple[str, str]]) -> list[Pair]:
    return [Pair(source, target, line) for line, (source, target) in enumerate(rows, start=1)]


def test_leaks_are_counted_in_four_senses():
    seen = TrainingIndex()
    training = pairs([("Guten Tag", "hello"), ("ja", "yes"), ("Haus", "house")])
    assert list(seen.watch(training)) == training
    evaluation = pairs(
        [
            ("ja", "yes"),  # the pair
            ("ja", "yeah"),  # the source
            (" GUTEN  tag", "Hello"),  # the pair but for case and spaces
            ("haus", "home"),  # the source but for case
            ("Hau", "shouse"),  # nothing: letters moved across
            ("nein", "no"),
            ("yes", "ja"),
        ]
    )
    report = leakage(seen, iter(evaluation))
    assert report == Leakage(num_rows=7, num_pairs=1, num_sources=2, num_folded_pairs=2, num_folded_sources=4)
    assert report.summary() == (
        "1 of 7 rows is in the training data (2 by source alone); but for case and spaces 2 (4 by source alone)"
    )


def test_planted_leaks_are_all_found_over_many_blocks():
    training = pairs([(f"source {n}", f"target {n}") for n in range(20_000)])
    evaluation = pairs([(f"source {n}", f"target {n}") for n in range(0, 40_000, 2)])
    seen = TrainingIndex()
    for _ in seen.watch(training):
        pass
    assert leakage(seen, evaluation) == Leakage(20_000, 10_000, 10_000, 10_000, 10_000)


def test_adding_tells_what_was_met_before():
    seen = TrainingIndex()
    met = seen.add(pairs([("a", "x"), ("a", "y"), ("A", "X"), ("a", "x")]))
    assert met.pair.tolist() == [False, False, False, True]
    assert met.source.tolist() == [False, True, False, True]
    assert met.folded_pair.tolist() == [False, False, True, True]
    assert seen.find(pairs([("a", "z")])).source.tolist() == [True]
