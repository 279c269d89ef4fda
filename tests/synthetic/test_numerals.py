from collections.abc import Callable

import pytest

from heedful.errors import UsageError
from heedful.synthetic.numerals import (
    LARGEST_NUMBER,
    TRADITIONAL,
    chinese_cardinal,
    chinese_digits,
    chinese_formal,
    english_cardinal,
    english_ordinal,
    ordinal_suffix,
)
from tests.text.reading import read_chinese, read_english

# All up to 1,100, where most rules meet, and further on a step without a common factor with ten.
NUMBERS = (*range(1100), *range(1100, LARGEST_NUMBER + 1, 37), LARGEST_NUMBER)


@pytest.mark.parametrize(("joiner", "comma"), [(" and ", ""), (" ", ""), (" and ", ","), (" ", ",")])
def test_english_words_add_up_to_the_number(joiner: str, comma: str) -> None:
    texts = [english_cardinal(number, joiner=joiner, comma=comma) for number in NUMBERS]
    assert [read_english(text) for text in texts] == list(NUMBERS)
    assert len(set(texts)) == len(texts)


def test_english_ranks_add_up_to_the_number() -> None:
    assert [read_english(english_ordinal(number)) for number in range(1, 1000)] == list(range(1, 1000))


@pytest.mark.parametrize("has_liang", [False, True])
def test_chinese_numerals_evaluate_to_the_number(has_liang: bool) -> None:
    assert [read_chinese(chinese_cardinal(number, has_liang=has_liang)) for number in NUMBERS] == list(NUMBERS)


def test_formal_numerals_evaluate_to_the_number_and_hold_no_plain_ones() -> None:
    texts = [chinese_formal(number) for number in NUMBERS]
    assert [read_chinese(text) for text in texts] == list(NUMBERS)
    assert not set("一二三四五六七八九十百千") & set("".join(texts))


@pytest.mark.parametrize(
    ("number", "plain", "with_liang", "formal"),
    [
        (0, "零", "零", "零"),
        (2, "二", "两", "贰"),
        (10, "十", "十", "壹拾"),
        (12, "十二", "十二", "壹拾贰"),
        (22, "二十二", "二十二", "贰拾贰"),
        (100, "一百", "一百", "壹佰"),
        (110, "一百一十", "一百一十", "壹佰壹拾"),
        (202, "二百零二", "两百零二", "贰佰零贰"),
        (1001, "一千零一", "一千零一", "壹仟零壹"),
        (1010, "一千零一十", "一千零一十", "壹仟零壹拾"),
        (2200, "二千二百", "两千两百", "贰仟贰佰"),
        (10_001, "一万零一", "一万零一", "壹万零壹"),
        (10_500, "一万零五百", "一万零五百", "壹万零伍佰"),
        (20_020, "二万零二十", "两万零二十", "贰万零贰拾"),
    ],
)
def test_chinese_spelling_follows_the_rules_for_zero_and_two(
    number: int, plain: str, with_liang: str, formal: str
) -> None:
    assert chinese_cardinal(number) == plain
    assert chinese_cardinal(number, has_liang=True) == with_liang
    assert chinese_formal(number) == formal


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (40, "forty"),
        (14, "fourteen"),
        (8, "eight"),
        (1005, "one thousand and five"),
        (90_012, "ninety thousand and twelve"),
    ],
)
def test_english_spelling(number: int, words: str) -> None:
    assert english_cardinal(number) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (5, "fifth"),
        (8, "eighth"),
        (9, "ninth"),
        (12, "twelfth"),
        (20, "twentieth"),
        (31, "thirty-first"),
        (100, "one hundredth"),
    ],
)
def test_english_ranks_that_are_not_regular(number: int, words: str) -> None:
    assert english_ordinal(number) == words


def test_suffix_of_eleven_to_thirteen_is_th_in_every_hundred() -> None:
    assert [ordinal_suffix(number) for number in (1, 2, 3, 11, 12, 13, 21, 111, 112, 213, 101)] == [
        *("st", "nd", "rd", "th", "th", "th", "st", "th", "th", "th", "st"),
    ]


def test_digits_are_replaced_one_by_one() -> None:
    assert [chinese_digits("2005", zero=zero) for zero in "〇零○"] == ["二〇〇五", "二零零五", "二○○五"]


def test_traditional_characters() -> None:
    assert chinese_cardinal(22_000, has_liang=True).translate(TRADITIONAL) == "兩萬兩千"
    assert chinese_formal(236).translate(TRADITIONAL) == "貳佰參拾陸"


@pytest.mark.parametrize("spell", [english_cardinal, english_ordinal, chinese_cardinal, chinese_formal])
@pytest.mark.parametrize("number", [-1, LARGEST_NUMBER + 1])
def test_numbers_out_of_range_are_refused(spell: Callable[[int], str], number: int) -> None:
    with pytest.raises(UsageError, match=str(number)):
        spell(number)
