"""Sentences that go on in the next line."""

import pytest

from heedful.documents.lines import goes_on


@pytest.mark.parametrize(
    ("line", "following", "expected"),
    [
        ("Ein Hund", "läuft.", True),
        ("Gasse 3", "Wien", False),
        ("Ja.", "nein", False),
        ('"Ja."', "sagt er", False),
        ("a", "", False),
    ],
)
def test_a_sentence_goes_on_in_lower_case(line: str, following: str, expected: bool):
    assert goes_on(line, following) is expected
