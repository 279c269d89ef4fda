"""Placement of inline tags in translations."""

import time
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.text.tag_placement import AlignedSegment, CharacterLink, place_tags, words
from heedful.text.tagged_text import OUTERMOST, Tag, TaggedText, weave

Placer = Callable[[TaggedText, str, Sequence[AlignedSegment]], TaggedText]


def by_words(source: str, target: str, links: str) -> AlignedSegment:
    """One segment with links between words, such as "0-1 1-0"."""
    left, right = [*words(source, 0, len(source))], [*words(target, 0, len(target))]
    pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
    linked = [CharacterLink(*left[first], *right[second]) for first, second in pairs]
    return AlignedSegment(0, len(source), 0, len(target), linked)


def marked(tagged: TaggedText) -> str:
    """Text with its tags written as <0>…</0> and <0/>."""
    shapes = {"open": "<{}>", "close": "</{}>", "point": "<{}/>"}
    return "".join(piece if isinstance(piece, str) else shapes[piece[0]].format(piece[1]) for piece in weave(tagged))


def tagged(written: str) -> TaggedText:
    """Text of which <…> are tags in the order of their beginning; <> is a point."""
    text, tags, opened = "", list[Tag](), list[int]()
    for character in written:
        if character == "[":
            tags.append(Tag(len(text), len(text), opened[-1] if opened else OUTERMOST))
            opened.append(len(tags) - 1)
        elif character == "]":
            index = opened.pop()
            tags[index] = tags[index]._replace(end=len(text))
        else:
            text += character
    return TaggedText(text, tuple(tags))


CASES = (
    ("ein [roter] Hund", "a red dog", "0-0 1-1 2-2", "a <0>red</0> dog"),
    (
        "gestern [habe ich] es [gesehen].",
        "I saw it yesterday.",
        "0-3 2-0 3-2 4-1 5-4",
        "<0>I</0> <1>saw</1> it yesterday.",
    ),
    ("[der [rote] Hund] bellt", "barking, the red dog", "0-2 1-3 2-4 3-0", "barking, <0>the <1>red</1> dog</0>"),
    ("[Alles hier.]", "All of this.", "0-0 1-2 2-3", "<0>All of this.</0>"),
    ("ein []Bild", "a picture", "0-0 1-1", "a <0/>picture"),
    ("ein Bild []", "a picture", "0-0 1-1", "a picture<0/>"),
    ("er [ja] kam", "he came", "0-0 2-1", "he <0>came</0>"),  # a word without counterpart: the nearest
    ("[a] [b] c", "x", "0-0 1-0 2-0", "<0>x</0><1/>"),
    ("[房]间很好", "The room is good", "0-1 1-1 3-3", "The <0>room</0> is good"),
    ("[a]", "", "", "<0/>"),
)


@pytest.mark.parametrize(("source", "target", "links", "expected"), CASES)
def test_a_tag_goes_where_its_words_went(source: str, target: str, links: str, expected: str):
    text = tagged(source)
    assert marked(place_tags(text, target, [by_words(text.text, target, links)])) == expected


def test_tags_cross_the_borders_of_segments():
    text = tagged("Ja. [Nein. Gut. Ich] weiß")
    target = "Yes. No. Good. know I"
    places = [(0, 3, 0, 4), (4, 9, 5, 8), (10, 14, 9, 14), (15, 23, 15, 21)]
    links = [CharacterLink(15, 18, 20, 21), CharacterLink(19, 23, 15, 19)]
    segments = [AlignedSegment(*place, links * (place[0] == 15)) for place in places]
    # The tag began before the last segment, so it begins with it there too.
    assert marked(place_tags(text, target, segments)) == "Yes. <0>No. Good. know I</0>"


def test_a_break_divides_the_translation_as_the_source():
    text = TaggedText("eins zwei drei vier", (Tag(9, 9, is_break=True),))
    assert marked(place_tags(text, "one two three four", [AlignedSegment(0, 19, 0, 18)])) == "one two<0/> three four"


def test_any_number_of_empty_elements_in_one_place():
    source, target = "a b c d e f g h " * 8, "A B C D E F G H " * 8
    spans = [*zip(words(source, 0, len(source)), words(target, 0, len(target)), strict=True)]
    links = [CharacterLink(*left, *right, 0.1) for left, _ in spans for _, right in spans]
    started = time.process_time()
    tags = (Tag(32, 32),) * 20_000
    placed = place_tags(TaggedText(source, tags), target, [AlignedSegment(0, 128, 0, 128, links)])
    assert time.process_time() - started < 4.0  # 16 s once
    assert [one[:2] for one in placed.tags] == [placed.tags[0][:2]] * 20_000


def test_what_is_kept_is_found_to_the_letter():
    text = TaggedText("nimm ls -l hier", (Tag(5, 10, is_kept=True),))
    placed = place_tags(text, "here use ls -l", [by_words(text.text, "here use ls -l", "0-1 4-0")])
    assert marked(placed) == "here use <0>ls -l</0>"


@st.composite
def tagged_pairs(draw: st.DrawFn) -> tuple[TaggedText, str, list[AlignedSegment]]:
    vocabulary = st.sampled_from(["ab", "c.", "房间", "-", "d"])
    source, target = (" ".join(draw(st.lists(vocabulary, max_size=7))) for _ in range(2))
    tags: list[Tag] = []

    def nest(low: int, high: int, parent: int, depth: int) -> None:
        for _ in range(draw(st.integers(0, 2))):
            start = draw(st.integers(low, high))
            end = draw(st.integers(start, high))
            tags.append(Tag(start, end, parent, is_break=start == end and draw(st.booleans())))
            if depth and start < end:
                nest(start, end, len(tags) - 1, depth - 1)
            low = end

    nest(0, len(source), OUTERMOST, 2)
    cuts = draw(st.integers(0, len(source))), draw(st.integers(0, len(target)))
    segments: list[AlignedSegment] = []
    for first, last, low, high in ((0, cuts[0], 0, cuts[1]), (cuts[0], len(source), cuts[1], len(target))):
        places = st.tuples(st.integers(first, max(first, last - 1)), st.integers(low, max(low, high - 1)))
        links = [CharacterLink(one, one + 1, two, two + 1, 0.5) for one, two in draw(st.lists(places, max_size=5))]
        segments.append(AlignedSegment(first, last, low, high, links))
    return TaggedText(source, tuple(tags)), target, segments


def contradiction(place: Placer, source: TaggedText, target: str, segments: Sequence[AlignedSegment]) -> str:
    """What a placement does wrong; empty if nothing."""
    placed = place(source, target, segments)
    open_tags: list[int] = []
    edges: dict[int, list[str]] = {}
    text = ""
    for piece in weave(placed):
        if isinstance(piece, str):
            text += piece
            continue
        edge, index = piece
        edges.setdefault(index, []).append(edge)
        if edge == "open":
            open_tags.append(index)
        elif edge == "close" and open_tags.pop() != index:
            return "elements overlap"
        if edge != "close":
            parent = placed.tags[index].parent
            if (
                parent != source.tags[index].parent
                or parent != ([OUTERMOST, *open_tags[: len(open_tags) - (edge == "open")]][-1])
            ):
                return "an element left its parent"
    if text.split() != target.split():
        return "the text changed"
    if sorted(edges) != [*range(len(source.tags))] or any(
        each not in (["open", "close"], ["point"]) for each in edges.values()
    ):
        return "a tag is lost or doubled"
    siblings: dict[int, int] = {}
    for tag in sorted(placed.tags):
        if tag.start < siblings.get(tag.parent, 0) and tag.start < tag.end and not tag.is_break:
            return "siblings overlap"
        siblings[tag.parent] = max(siblings.get(tag.parent, 0), tag.end)
    return ""


@settings(max_examples=150)
@given(tagged_pairs())
def test_the_result_is_always_well_formed(pair: tuple[TaggedText, str, list[AlignedSegment]]):
    assert contradiction(place_tags, *pair) == ""


def by_first_and_last(source: TaggedText, target: str, segments: Sequence[AlignedSegment]) -> TaggedText:
    """The naive way: from the first linked character to the last one."""
    links = [link for segment in segments for link in segment.links]
    placed: list[Tag] = []
    for tag in source.tags:
        own = [link for link in links if tag.start <= link.source_start < tag.end]
        start = min((link.target_start for link in own), default=0)
        placed.append(tag._replace(start=start, end=max((link.target_end for link in own), default=start)))
    return TaggedText(target, tuple(placed))


def forgetful(source: TaggedText, target: str, segments: Sequence[AlignedSegment]) -> TaggedText:
    """Drops tags without words."""
    placed = place_tags(source, target, segments)
    return TaggedText(target, tuple(tag for tag in placed.tags if tag.start < tag.end))


@pytest.mark.parametrize(
    ("wrong", "source", "target", "links", "fault"),
    [
        (by_first_and_last, "[a] [b] c d", "x y z w", "0-0 0-2 1-1", "siblings overlap"),
        (forgetful, "a []b", "x y", "0-0 1-1", "a tag is lost or doubled"),
    ],
)
def test_a_wrong_placement_is_noticed(wrong: Placer, source: str, target: str, links: str, fault: str):
    text = tagged(source)
    assert contradiction(wrong, text, target, [by_words(text.text, target, links)]) == fault
    assert contradiction(place_tags, text, target, [by_words(text.text, target, links)]) == ""


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        ("zwei männer [] warten.", "two men are waiting.", "0-0 1-1 2-2 2-3 3-4", "two men <0/> are waiting."),
        ("männer [] [] warten", "men wait", "0-0 1-1", "men <0/> <1/> wait"),
        ("zwei [[] männer] warten", "two men wait", "0-0 1-1 2-2", "two <0><1/> men</0> wait"),
        ("a [] b", "B", "1-0", "B <0/>"),
        ("a []b", "A B", "0-0 1-1", "A <0/>B"),
        ("[] a b []", "A B", "0-0 1-1", "<0/>A B<1/>"),
    ],
)
def test_an_element_between_spaces_stands_between_spaces(source: str, target: str, links: str, expected: str):
    marks = tagged(source)
    assert marked(place_tags(marks, target, [by_words(marks.text, target, links)])) == expected


def test_what_is_kept_is_found_between_words_rather_than_within_one():
    source = TaggedText("x und Axt", (Tag(0, 1, is_kept=True),))
    output = place_tags(source, "axe and x", [AlignedSegment(0, 9, 0, 9)])
    assert output.tags[0][:2] == (8, 9)


def test_of_equal_words_the_one_that_is_linked_as_a_whole_is_kept():
    source = TaggedText("x und Axt", (Tag(0, 1, is_kept=True),))
    links = [CharacterLink(0, 1, 9, 10)]
    assert place_tags(source, "x axe and x", [AlignedSegment(0, 9, 0, 11, links)]).tags[0][:2] == (0, 1)
    links = [CharacterLink(0, 1, 10, 11)]
    assert place_tags(source, "x axe and x", [AlignedSegment(0, 9, 0, 11, links)]).tags[0][:2] == (10, 11)
