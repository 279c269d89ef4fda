"""The split of labelled texts, class by class."""

from collections import Counter

from heedful.data.corpus import Pair
from heedful.data.label_split import ENOUGH_TEXTS, num_held_out, split_labelled
from heedful.data.split_positions import Part


def rows(**counts: int) -> list[Pair]:
    """Rows of as many texts of each label as given, mixed."""
    labelled = [(f"{label} {number}", label) for label, count in counts.items() for number in range(count)]
    return [
        Pair(text, label, line) for line, (text, label) in enumerate(sorted(labelled, key=lambda row: row[0][::-1]))
    ]


def split(pairs: list[Pair], dev: float = 0.1, test: float = 0.1) -> dict[Part, list[Pair]]:
    return split_labelled(pairs, dev, test, lambda label: (label,))


def counts(parts: dict[Part, list[Pair]], name: Part) -> Counter[str]:
    return Counter(pair.target for pair in parts[name])


def test_each_class_has_its_share_in_each_part():
    pairs = rows(ham=300, spam=15, odd=ENOUGH_TEXTS)
    parts = split(pairs)
    assert sorted(pair for part in parts.values() for pair in part) == sorted(pairs)
    assert parts["train"] == [pair for pair in pairs if pair in parts["train"]]
    for name in ("dev", "test"):
        assert counts(parts, name)["ham"] == 30
        assert 1 <= counts(parts, name)["spam"] <= 2
        assert counts(parts, name)["odd"] == 1


def test_classes_of_few_texts_keep_most_and_take_turns():
    parts = split(rows(**{f"label{number}": 5 for number in range(40)}))
    assert min(counts(parts, "train").values()) >= 3
    for name in ("dev", "test"):
        assert 18 <= len(parts[name]) <= 22
    assert not {*counts(parts, "dev")} & {*counts(parts, "test")}
    single = split(rows(ham=100, one=1, two=2))
    assert counts(single, "train")["one"] == 1
    assert counts(single, "train")["two"] == 2


def test_rows_of_a_text_stay_together_in_the_class_of_their_rarest_label():
    pairs = [Pair(each.source, label, 2 * each.line + n) for each in rows(ham=200) for n, label in enumerate("ab")]
    pairs += [Pair("ham 1", "rare", 999)]
    parts = split(pairs)
    texts = {name: {pair.source for pair in part} for name, part in parts.items()}
    assert sum(map(len, texts.values())) == 200
    assert len(texts["dev"]) == 20
    assert len(texts["test"]) == 19  # of 199: one is of the rare class
    several = split_labelled(pairs, 0.5, 0.0, lambda label: (label, "all"))
    assert len({pair.source for pair in several["dev"]}) in (99, 100)


def test_a_corpus_that_grows_moves_few_texts():
    small, large = split(rows(ham=200, spam=20)), split(rows(ham=210, spam=21))
    moved = {pair.source for pair in small["dev"]} & {pair.source for pair in large["train"]}
    assert len(moved) <= 4


def test_the_number_of_texts_that_are_held_out_follows_from_the_sizes_of_classes():
    for sizes in ({"ham": 200, "spam": 21}, {"ham": 3, "spam": 8, "egg": 1}, {f"{n}": 2 for n in range(60)}):
        parts = split(rows(**sizes))
        assert num_held_out(sizes, 0.1, 0.1) == len(parts["dev"]) + len(parts["test"])


def test_nothing_is_held_out_without_a_share():
    pairs = rows(ham=20, spam=20)
    assert split(pairs, 0.0, 0.0) == {"train": pairs, "dev": [], "test": []}
    assert not split(pairs, 0.1, 0.0)["test"]
