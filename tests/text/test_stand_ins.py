"""Stand-ins for spans that the markup of a text excludes from translation."""

import pytest

from heedful.text.kept import MARKUP, find_kept
from heedful.text.segments import Text, split
from heedful.text.stand_ins import StandIns


def apart(text: str, *spans: str) -> Text:
    """Segments of a text in which the first occurrence of each span stays."""
    places = [(text.index(span), text.index(span) + len(span)) for span in spans]
    marked = StandIns.of(text, places)
    find = lambda part: marked.find(part, find_kept)  # noqa: E731
    return marked.restored(split(marked.text, find=find, fits=lambda part: len(part) < 60))


@pytest.mark.parametrize(
    ("text", "spans", "sources"),
    [
        ("Setze x = 1. Dann y. Fertig ist es.", ("x = 1. Dann y",), ["Setze x = 1. Dann y.", "Fertig ist es."]),
        ("- a: Ja. Nein", ("- a: Ja.",), ["- a: Ja. Nein"]),
        ("Hier 12 und x 12 und.\nDort x", ("x",), ["Hier 12 und x 12 und.", "Dort x"]),
        ("x ist y", ("x", "y"), ["x ist y"]),
        ("(Nimm !) oder ?)", ("!", "?)"), ["(Nimm !) oder ?)"]),
        ("Das ist " + "lang " * 30 + "oder.", ("lang " * 30,), ["Das ist " + "lang " * 30 + "oder."]),
    ],
)
def test_a_span_is_a_word_of_its_sentence(text: str, spans: tuple[str, ...], sources: list[str]):
    parts = apart(text, *spans)
    assert [one.source for one in parts.segments] == sources
    assert parts.join([one.source for one in parts.segments]) == text
    assert [text[one.start : one.end] for one in parts.segments] == sources
    kept = [one.reading[span.start : span.end] for one in parts.segments for span in one.kept if span.kind == MARKUP]
    assert kept == [*spans]
    numbers = [
        one.reading[span.start : span.end] for one in parts.segments for span in one.kept if span.kind == "number"
    ]
    assert numbers == ["12"] * text.count("12")


def test_spans_within_others_and_empty_ones_are_left_out():
    marked = StandIns.of("abcdef \ue000", [(3, 5), (1, 4), (2, 2), (1, 2)])
    assert (marked.text, marked.spans) == ("a\ue001ef \ue000", ("bcd",))


def test_a_span_within_an_address_is_a_part_of_it():
    (one,) = apart("Siehe https://example.org/x/y.", "x").segments
    assert [(one.reading[span.start : span.end], span.kind) for span in one.kept] == [
        ("https://example.org/x/y", "url")
    ]


def test_a_span_over_several_lines_is_text():
    text = "Setze a\nb ein"
    (one,) = apart(text, "a\nb").segments
    assert (one.source, one.reading, one.kept) == (text, "Setze a b ein", ())
