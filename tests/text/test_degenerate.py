"""Outputs that are no translation."""

import pytest

from heedful.text.degenerate import fault_of


@pytest.mark.parametrize(
    ("source", "output", "fault"),
    [
        ("Ein Mann.", "the man is the man is the man is the man is", "loop"),
        ("Ein Mann.", "A man, a man, a man", "loop"),
        ("Ein Mann, ein Mann, ein Mann.", "A man, a man, a man", ""),
        ("Weg, weg, weg!", "Go away, go away, go away!", ""),
        ("Don't, don't, don't!", "Go away, go away, go away!", ""),
        ("»Weg«, »weg«, »weg«", "Go away, go away, go away!", ""),
        ("ติดติดติด", "stuck on stuck on stuck on", ""),
        ("Er lief und lief und lief.", "He ran and ran and ran and ran", ""),
        ("走走走！", "Go away, go away, go away!", ""),
        ("Ein Hund.", "A very, very, very old dog", ""),
        ("Ein Hund.", "A dog dog dog, dog dog", "loop"),
        ("Hm.", "hahahahahahahahahahahahahaha", "loop"),
        ("vrijheidsstrijd", "ˈvrɛi̯dstrɛi̯dstrɛi̯dstrɛi̯dstrɛi̯d", "loop"),
        ("हँसी", "हा" * 20, "loop"),
        ("हँसी", "हाँ हाँ हाँ हाँ हाँ", "loop"),
        ("Ein Hund.", "1111111111111111111111111", "loop"),
        (
            "Ein Hund.",
            "word and another " + "of many different ones " * 2 + "xyz " * 3 + "abcdefghij klmnopqrst",
            "length",
        ),
        ("Ein Hund.", ".", "empty"),
        ("Ein Hund.", "", "empty"),
        ("...", "", ""),
        ("Ein Hund.", "A dog.", ""),
        ("Nein nein nein nein nein!", "No no no no no!", ""),
        ("他们。", "They are a group of several people", ""),
        ("Ein Hund und ein Hund.", "A dog and a dog and a dog.", ""),
        ("Zeile", "Line ---------------------------------", ""),
    ],
)
def test_faults(source: str, output: str, fault: str):
    assert fault_of(source, output) == fault


def test_time_is_linear():
    assert fault_of("Ein Hund.", "a b " * 50_000) == "length"
