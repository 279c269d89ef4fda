"""Texts merged with their inline tags."""

from heedful.text.tagged_text import Tag, TaggedText, weave


def test_elements_nest_and_text_stays():
    tags = (Tag(0, 5), Tag(2, 5, 0), Tag(2, 2, 1), Tag(5, 5))
    woven = [*weave(TaggedText("abcde", tags))]
    assert woven == [("open", 0), "ab", ("open", 1), ("point", 2), "cde", ("close", 1), ("close", 0), ("point", 3)]


def test_ten_thousand_nested_elements():
    tags = tuple(Tag(0, 1, index - 1) for index in range(10_000))
    woven = [*weave(TaggedText("x", tags))]
    assert woven[:2] + woven[9_999:10_002] + woven[-1:] == [
        ("open", 0), ("open", 1), ("open", 9_999), "x", ("close", 9_999), ("close", 0)
    ]  # fmt: skip
