"""Treatment of tags, in the terms of DeepL."""

import pytest

from heedful.documents.html import HtmlMarkup
from heedful.documents.markup_rules import TagHandling
from heedful.text.tagged_text import TaggedText


def texts(document: str, handling: TagHandling) -> list[str]:
    markup = HtmlMarkup(document, handling.rules(document))
    assert markup.write(markup.passages) == document
    return [each.text for each in markup.passages]


@pytest.mark.parametrize(
    ("document", "handling", "expected"),
    [
        ("<d><t>T</t><p>a <b>c</b> d<x/>.</p></d>", TagHandling("xml"), ["T", "a c d."]),
        ("<d><t>T</t><p>a</p></d>", TagHandling("xml", has_outline=False), ["Ta"]),
        ("<d><t>T</t><p>a</p></d>", TagHandling("xml", non_splitting=frozenset("t")), ["T", "a"]),
        ("a<p>b</p>", TagHandling("xml", splitting=frozenset("p")), ["a", "b"]),
        ("take <k>X</k> now <k>Y</k>", TagHandling("xml", ignored=frozenset("k")), ["take X now Y"]),
        ("<d><k>X</k></d>", TagHandling("xml", ignored=frozenset("k")), []),
        ('<!DOCTYPE d [<!ENTITY c "x">\n]>\n<d><p>a &c; b &amp; &#99;</p></d>', TagHandling("xml"), ["a  b & c"]),
        ("<Par>a</Par><script/>b<![CDATA[c<d]]>", TagHandling("xml"), ["ab"]),
        ("<p>a<div>b</div>", TagHandling(non_splitting=frozenset(("div",))), ["ab"]),
        ("a <q>b</q>", TagHandling(splitting=frozenset("q")), ["a", "b"]),
        ("a <q>b</q> c", TagHandling(ignored=frozenset("q")), ["a b c"]),
    ],
)
def test_sentences_end_where_the_request_says(document: str, handling: TagHandling, expected: list[str]):
    assert texts(document, handling) == expected


def test_entities_of_a_document_stay():
    source = '<!DOCTYPE d [<!ENTITY c "x>">\n]>\n<d><p>a &c; b &lt;</p></d>'
    markup = HtmlMarkup(source, TagHandling("xml").rules(source))
    outputs = [TaggedText(each.text.upper(), each.tags) for each in markup.passages]
    assert markup.write(outputs) == source.replace("a &c; b", "A &c; B")
