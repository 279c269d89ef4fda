import random
import re
from decimal import Decimal

import pytest

from heedful.synthetic.grammar import SPLITS, SlotTexts
from heedful.synthetic.numbers import DOMAINS, SLOTS, Number, draw_number


@pytest.mark.parametrize(
    ("number", "canonical"),
    [
        (Number(False, 312, ""), "312"),
        (Number(True, 3, "5"), "-3.5"),
        (Number(False, 0, "05"), "0.05"),
        (Number(False, 0, ""), "0"),
    ],
)
def test_canonical_form(number: Number, canonical: str) -> None:
    assert number.canonical == canonical


@pytest.mark.parametrize(
    ("template", "number", "written"),
    [
        ("{grouped} {spaced} {grouped_wide}", Number(False, 3205, ""), "3,205 3 205 ３，２０５"),
        ("{int}.{cents}", Number(False, 3, "5"), "3.50"),
        ("{words_comma}", Number(False, 3205, ""), "three thousand, two hundred five"),
        ("{hundreds_words_and}", Number(False, 1250, ""), "twelve hundred and fifty"),
        ("{a_words}", Number(False, 1205, ""), "a thousand two hundred and five"),
        ("{digits_oh}", Number(False, 305, ""), "three oh five"),
        ("{thousands}k {thousands}", Number(False, 12_500, ""), "12.5k 12.5"),
        ("{ten_thousands}万", Number(False, 30_000, ""), "3万"),
        ("{ten_thousands_han}万", Number(False, 20_500, ""), "二点零五万"),
        ("{ten_thousands_han}万", Number(False, 20_000, ""), "两万"),
        ("{han_dropping_one}", Number(False, 312, ""), "三百十二"),
        ("{han_dropping_unit}", Number(False, 2500, ""), "两千五"),
        ("{digits_and_units}", Number(False, 3200, ""), "3千2百"),
        ("{digits_dropping_unit}", Number(False, 12_000, ""), "1万2"),
        ("{short_tens}", Number(False, 125, ""), "一百廿五"),
        ("{digits_han}{digits_ling}", Number(False, 305, ""), "三〇五三零五"),
        ("{formal}元{jiao_formal}角{fen_formal}分", Number(False, 3, "52"), "叁元伍角贰分"),
        ("{formal_traditional}", Number(False, 236, ""), "貳佰參拾陸"),
        ("負{liang_traditional}", Number(True, 2000, ""), "負兩千"),
    ],
)
def test_slots(template: str, number: Number, written: str) -> None:
    assert template.format_map(SlotTexts(SLOTS, number)) == written


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_draws_are_canonical_and_within_the_bounds_that_the_domain_names(domain: str, split: str) -> None:
    source = random.Random(4)
    drawn = {draw_number("{int}", domain, split, source)[1] for _ in range(300)}
    low, high = (Decimal(bound) for bound in re.match(r"(-?[\d.]+) to .*?(-?[\d.]+)(?=$|,)", domain).groups())
    assert all(low <= Decimal(number) <= high for number in drawn)
    assert all(re.fullmatch(r"-?(0|[1-9]\d*)(\.\d*[1-9])?", number) for number in drawn)
    assert len(drawn) >= 3


@pytest.mark.parametrize(
    ("number", "can"),
    [(350, True), (2500, True), (35_000, True), (3250, True), (300, False), (305, False), (3050, False)],
)
def test_the_last_unit_is_dropped_only_where_the_reading_stays_clear(number: int, can: bool) -> None:
    is_meant = DOMAINS["110 to 99000, last unit not needed"][1]
    assert is_meant(Number(False, number, "")) is can
