"""Passages that are collected from a format's elements."""

from heedful.documents.inline import PassageBuilder
from heedful.text.tagged_text import Tag, TaggedText


def test_elements_with_one_edge_are_points():
    builder: PassageBuilder[str] = PassageBuilder()
    builder.add("  a ")
    builder.begin("b", "<b>")
    builder.begin("i", "<i>")
    builder.add("c")
    builder.end("b", "</b>")
    builder.end("i", "</i>")
    builder.add(" ")
    passage = builder.passage()
    assert passage.source == TaggedText("a c", (Tag(2, 3), Tag(2, 2, 0), Tag(3, 3)))
    assert [*passage.woven(passage.source)] == ["a ", ("<b>",), ("<i>",), "c", ("</b>",), ("</i>",)]


def test_what_is_kept_is_written_by_its_mark():
    builder: PassageBuilder[str] = PassageBuilder()
    builder.keep("x", "<code>x</code>")
    assert not builder.passage().needs_translation
    builder.add(" y")
    passage = builder.passage()
    assert passage.needs_translation
    assert [*passage.woven(TaggedText("Y z", (Tag(2, 3, is_kept=True),)))] == ["Y ", ("<code>x</code>",)]
