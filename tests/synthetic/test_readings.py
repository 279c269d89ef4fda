"""Written forms and their readings: rules, splits, and the pattern that finds them in texts."""

import re

import pytest

from heedful.errors import UsageError
from heedful.synthetic.chinese_readings import chinese_number
from heedful.synthetic.english_readings import english_number, english_year
from heedful.synthetic.grammar import Language
from heedful.synthetic.readings import written_forms
from heedful.text.written_forms import written_form_spans
from tests.text.reading import read_number

AROUND: dict[Language, tuple[str, str]] = {"en": ("We saw ", " there."), "zh": ("他看到", "，然后走了。")}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_form_is_found_whole_in_a_text(language: Language):
    before, after = AROUND[language]
    for written, reading in written_forms(3000, 4, language):
        text = before + written + after
        assert written_form_spans(text) == [(len(before), len(before) + len(written))], text
        assert not re.search(r"\d", reading), (written, reading)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_form_has_one_reading_and_one_split(language: Language):
    readings: dict[str, str] = {}
    for written, reading in written_forms(5000, 1, language):
        assert readings.setdefault(written, reading) == reading, written
    splits = {split: [*written_forms(500, 1, language, split)] for split in ("train", "dev", "test")}
    lowered = {split: {written.lower() for written, _ in pairs} for split, pairs in splits.items()}
    assert not lowered["train"] & (lowered["dev"] | lowered["test"])
    assert not lowered["dev"] & lowered["test"]
    assert len(dict(splits["test"])) == 500
    assert splits["train"] == [*written_forms(500, 1, language, "train")]
    assert splits["train"] != [*written_forms(500, 2, language, "train")]


@pytest.mark.parametrize("number", [0, 7, 10, 110, 1005, 10_010, 99_999, 100_000, 2_000_045, 120_003_040, 999_999_999])
def test_numbers_are_read_in_both_languages(number: int):
    spoken = english_number(number)
    parts = re.split(r" ?(million|thousand) ?", spoken)
    value, scale = 0, {"million": 1_000_000, "thousand": 1000}
    for index in range(0, len(parts), 2):
        if parts[index]:
            value += int(read_number(parts[index])) * scale.get(parts[index + 1] if index + 1 < len(parts) else "", 1)
    assert value == number
    above, _, rest = chinese_number(number).rpartition("亿")
    many, _, few = rest.rpartition("万")
    units = ((above, 100_000_000), (many, 10_000), (few, 1))
    assert sum(int(read_number(text.removeprefix("零") or "零")) * unit for text, unit in units if text) == number


def test_years_are_read_in_pairs():
    assert [english_year(year) for year in (1100, 1807, 1910, 2000, 2010)] == [
        "eleven hundred",
        "eighteen oh seven",
        "nineteen ten",
        "two thousand",
        "twenty ten",
    ]


@pytest.mark.parametrize("read", [english_number, chinese_number])
def test_what_cannot_be_read_is_named(read: object):
    assert callable(read)
    for number in (-1, 1_000_000_000):
        with pytest.raises(UsageError, match=f"cannot read {number}"):
            read(number)
    with pytest.raises(UsageError, match="language 'fr' is unknown"):
        next(written_forms(1, 1, "fr"))  # pyright: ignore[reportArgumentType]
