"""Scripts of characters and of texts."""

import unicodedata
from itertools import pairwise

import pytest

from heedful.text import scripts as scripts_module
from heedful.text.scripts import main_script, script_of

# The first word of a letter's Unicode name, where it is not the script's name in the table.
OTHER_NAMES = {"HIRAGANA": "Kana", "KATAKANA": "Kana", "CJK": "Han", "IDEOGRAPHIC": "Han", "FULLWIDTH": "Latin"}
OTHER_NAMES |= {"HALFWIDTH": "Kana", "COPTIC": "Greek", "FEMININE": "Latin", "MASCULINE": "Latin", "MICRO": ""}


def test_the_table_is_sorted_and_apart():
    blocks = scripts_module._BLOCKS  # pyright: ignore[reportPrivateUsage]
    assert all(first <= last for first, last, _ in blocks)
    assert all(before[1] < after[0] for before, after in pairwise(blocks))


def test_letters_are_in_the_script_of_their_name():
    known = {script for _, _, script in scripts_module._BLOCKS}  # pyright: ignore[reportPrivateUsage]
    wrong: list[str] = []
    for code in (*range(0x1D00), *range(0x1E00, 0x3100)):  # the phonetic extensions are mixed
        character = chr(code)
        if unicodedata.category(character) not in ("Lu", "Ll", "Lo"):
            continue
        first = unicodedata.name(character).split(maxsplit=1)[0]
        script = OTHER_NAMES.get(first, first.capitalize())
        if script in known and script_of(character) not in (script, ""):
            wrong.append(f"{code:04X} {unicodedata.name(character)}: {script_of(character)}")
        elif script in known and code < 0x1000 and script_of(character) == "":
            wrong.append(f"{code:04X} {unicodedata.name(character)}: not in the table")
    assert wrong == []


def test_signs_beside_letters_have_no_script():
    assert [script_of(sign) for sign in "@[`{©«»×÷"] == [""] * 9


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Straße", "Latin"),
        ("12:30!", ""),
        ("", ""),
        ("—…“”", ""),
        ("我说 OK", "Han"),
        ("我 is a word", "Latin"),
        ("カタカナ", "Japanese"),
        ("日本語の本", "Japanese"),
        ("학교", "Hangul"),
        ("Привет, Tom", "Cyrillic"),
        ("مرحبا", "Arabic"),
        ("𠀀𠀁", "Han"),
        ("\U0001f600", ""),
    ],
)
def test_the_script_of_a_text(text: str, script: str):
    assert main_script(text) == script
