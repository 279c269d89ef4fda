"""Sentences of a request and the layout between them."""

import pytest

from heedful.serving.sentences import join, split


def sentences(text: str) -> list[str]:
    return [part.text for part in split(text) if part.is_sentence]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n\n ",
        "One. Two!\n\n\tThree  four. ",
        "Good day, Dr. Brown.  How are you?\r\nFine.",
        "房间很好。服务不错！“真的？”是的……\n",
        "a" * 50,
    ],
)
def test_parts_are_the_text(text: str):
    parts = split(text, lambda sentence: len(sentence) <= 12)
    assert "".join(part.text for part in parts) == text
    assert all(part.text.strip() == part.text and part.text for part in parts if part.is_sentence)
    assert all(not part.text.strip() for part in parts if not part.is_sentence)
    assert all(len(part.text) <= 12 for part in parts if part.is_sentence)


def test_sentences_are_found_by_the_rules_of_documents():
    assert sentences("She Won. It rains.\nAm 3. Mai kam Dr. Fox. Gut.") == [
        "She Won.",
        "It rains.",
        "Am 3. Mai kam Dr. Fox.",
        "Gut.",
    ]


def test_long_sentence_is_split_at_the_space_before_its_middle():
    parts = split("one two three four", lambda sentence: len(sentence) <= 10)
    assert [part.text for part in parts] == ["one two", " ", "three four"]


@pytest.mark.parametrize(
    ("text", "outputs", "expected"),
    [
        ("One. Two!\n\nThree", ["Eins.", "Zwei!", "Drei"], "Eins. Zwei!\n\nDrei"),
        ("Good. Day.", ["好。", "天。"], "好。天。"),
        ("好。天。", ["Good.", "Day."], "Good. Day."),
        ("好。天。", ["好。", "天。"], "好。天。"),
        ("Good. ", ["好。"], "好。 "),
    ],
)
def test_join(text: str, outputs: list[str], expected: str):
    assert join(split(text), outputs) == expected
