"""Layout at the ends of segments."""

import pytest

from heedful.text.kept import find_kept
from heedful.text.segment_edges import without_edges
from heedful.text.segments import split


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(Ein Hund läuft.)", ["Ein Hund läuft."]),
        ("(Ein Hund. Eine Katze.)", ["Ein Hund.", "Eine Katze."]),
        ("(Ein Hund läuft).", ["Ein Hund läuft"]),
        ('"Ein Hund läuft"!', ["Ein Hund läuft"]),
        ("„Ein Hund. Eine Katze.“", ["Ein Hund.", "Eine Katze."]),
        ("»Ein Hund.«", ["Ein Hund."]),
        ("“Ein Hund. Eine Katze!”", ["Ein Hund.", "Eine Katze!"]),
        ("Ein Hund: Eine Katze,", ["Ein Hund: Eine Katze"]),
        ("[Musik]", ["Musik"]),
        ("- [Tür knallt]", ["Tür knallt"]),
        ('"Ein Hund läuft."', ["Ein Hund läuft."]),
        ('"Ein Hund. Eine Katze."', ["Ein Hund.", "Eine Katze."]),
        ("'Ein Hund läuft.'", ["Ein Hund läuft."]),
        ("=== Ein Hund ===", ["Ein Hund"]),
        ("~~~ x ~~~", ["x"]),
        ("***Ein Hund***", ["Ein Hund"]),
        ("**Ein Hund**", ["Ein Hund"]),
        ("----- Ein Hund", ["Ein Hund"]),
        ("### Ein Hund", ["Ein Hund"]),
        ("...ein Hund", ["ein Hund"]),
        ("Ein Hund :-)", ["Ein Hund"]),
        ("[(*** Ein Hund ***)]", ["Ein Hund"]),
        ("===) Ein Hund :-)===", ["Ein Hund"]),
        ("Ein Hund :-),", ["Ein Hund"]),
    ],
)
def test_layout_around_segments_is_put_aside_and_back(text: str, parts: list[str]):
    apart = split(text, find=find_kept)
    assert [one.source for one in apart.segments] == parts
    assert apart.join(["x"] * len(parts)).count("x") == len(parts)
    assert apart.join(parts) == text


@pytest.mark.parametrize(
    "text",
    [
        "(Ein) Hund läuft (schnell)",
        '"Hallo", sagte er.',
        '"A" und "B"',
        'Er sagte: "Hallo."',
        "'n Hund läuft.",
        "Ein Hund...",
        "Ein Hund ?!",
        "Was?!!!",
        'Er sagte "Hallo".',
        "Ein Hund (alt).",
        "-----",
        "5 €",
        "[[Ein Hund]]x",
        "{x} [{y}]",
    ],
)
def test_marks_of_the_sentence_itself_stay(text: str):
    assert [one.source for one in split(text, find=find_kept).segments] == [text]


@pytest.mark.parametrize("part", ["(", "[(", "= ", "=~", '"', "*_", ":) ", "(!", "!", "===---", ",==="])
def test_rows_of_marks_take_linear_time(part: str):
    text = part * 100_000
    assert without_edges(text + "x")[1] == len(text) + 1
    assert without_edges(text) == (0, len(text))
