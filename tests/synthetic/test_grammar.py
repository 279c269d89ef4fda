import random
from collections import Counter

import pytest

from heedful.synthetic.grammar import Family, expand, pick, split_of


def test_expand_writes_out_every_choice_in_order() -> None:
    assert expand("a[b|c|]d[e|f]", "{g}") == ("abde", "abdf", "acde", "acdf", "ade", "adf", "{g}")


@pytest.mark.parametrize(
    ("target", "split"),
    [
        *(("1950-01-01", "train"), ("2021-03-05", "train"), ("312", "train"), ("-3.5", "train")),
        *(("2021-02-03", "dev"), ("2021-01-28", "test"), ("-3", "test")),
    ],
)
def test_splits_never_move(target: str, split: str) -> None:
    # Figures measured on the test split mean nothing once a value changes sides.
    assert split_of(target) == split


def test_a_twentieth_of_all_values_is_held_out_for_each_of_dev_and_test() -> None:
    shares = Counter(split_of(str(number)) for number in range(20_000))
    assert set(shares) == {"train", "dev", "test"}
    assert all(abs(shares[split] / 20_000 - 0.05) < 0.01 for split in ("dev", "test"))


def test_pick_is_uniform_and_takes_one_number() -> None:
    source, twin = random.Random(3), random.Random(3)
    drawn = Counter(pick(source, "abc") for _ in range(3000))
    assert set(drawn) == set("abc")
    assert max(drawn.values()) - min(drawn.values()) < 200
    for _ in range(3000):
        twin.random()
    assert source.random() == twin.random()


def _family(bare_share: float) -> Family:
    return Family("date", "en", "any date", 1, ("{day}", "{dd}"), ("on {}", "by {}."), bare_share)


def test_a_family_pairs_every_core_with_every_carrier() -> None:
    texts = [template.text for template in _family(0.5).templates()]
    assert texts == ["{day}", "{dd}", "on {day}", "on {dd}", "by {day}.", "by {dd}."]


@pytest.mark.parametrize("bare_share", [0, 0.5])
def test_a_family_draws_what_it_enumerates(bare_share: float) -> None:
    family, source = _family(bare_share), random.Random(1)
    assert {family.draw(source) for _ in range(300)} == set(family.templates())


def test_a_family_without_carriers_stands_alone() -> None:
    family, source = Family("date", "en", "any date", 1, ("{day}",), (), 1), random.Random(1)
    assert {family.draw(source).text for _ in range(9)} == {"{day}"} == {item.text for item in family.templates()}
