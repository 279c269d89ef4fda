"""Kept spans, found by rules; their marks; and their places without marks."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import UsageError
from heedful.text.kept import Kept, find_kept, has_words, kept_rules, own_spans
from heedful.text.kept_places import lift, put_back, word_places
from heedful.text.tag_placement import CharacterLink
from tests.text.kept_cases import CASES, ORDINARY, SCRIPTS

TEXT = (
    "Siehe https://example.org/a?b=(1), max.muster@example.org, @heini #tag {name} {{x}} ${V} %s %(x)d $HOME "
    "<b>fett</b> "
    "am 3.5.2024 um 12:30 Uhr, 2026-11-28, 1.234,56 € A4 COVID-19 MP3 `x = 1` {n, plural, one {# dog} other {# dogs}} "
    "我有3个 🐶👨\u200d👩\u200d👧🇩🇪☀\ufe0f Привет, мир"
)


def character_links(source: str, target: str, links: list[tuple[int, int]]) -> list[CharacterLink]:
    """Links between the characters of words that are linked."""
    left, right = ([match.span() for match in re.finditer(r"\w+", text)] for text in (source, target))
    return [CharacterLink(*left[one], *right[other]) for one, other in links]


def spans(text: str, **settings: object) -> list[str]:
    return [text[one.start : one.end] for one in find_kept(text, **settings)]  # type: ignore[arg-type]


def test_spans_of_each_rule():
    found = find_kept(TEXT, knows=lambda script: script != "Cyrillic")
    assert {one.kind for one in found} == {*kept_rules(), "script"}
    expected = "https://example.org/a?b=(1) max.muster@example.org @heini #tag {name} {{x}} ${V} %s %(x)d".split()
    expected += ["$HOME", "<b>", "</b>"]
    expected += ["3.5.2024", "12:30", "2026-11-28", "1.234,56 €", "A4", "COVID-19", "MP3", "`x = 1`"]
    expected += [
        "{n, plural, one {# dog} other {# dogs}}",
        "3",
        "🐶👨\u200d👩\u200d👧🇩🇪☀\ufe0f",
        "Привет",
        "мир",
    ]
    assert [TEXT[one.start : one.end] for one in found] == expected
    assert all(one.end <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_spans_of_many_forms(text: str, expected: list[str]):
    assert spans(text) == expected


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_words_are_no_spans(text: str):
    assert spans(text) == []


@pytest.mark.parametrize(("text", "expected"), SCRIPTS)
def test_words_in_unknown_scripts_have_their_marks(text: str, expected: list[str]):
    assert spans(text, knows=lambda script: script == "Latin") == expected


def test_spans_between_words_part_them_and_tags_within_words_do_not():
    for text, rest in (
        ("Hund&nbsp;läuft", "Hund läuft"),
        ("Hund<br>läuft", "Hund läuft"),
        ("Hund<b>e</b>", "Hunde"),
        ("Hun&shy;de", "Hunde"),
        ("Hund{x}e", "Hund e"),
        ("Hund {x}e", "Hund e"),
    ):
        lifted = lift(text, find_kept(text))
        assert lifted.text == rest
        output, places = put_back(lifted, lifted.text, ())
        assert len(lifted.origins) == len(rest)
        assert all(output[place] == letter for place, letter in zip(places, rest, strict=True))


def test_a_number_has_its_sign():
    text = "100% sicher, 3,5 % und 12€ statt $5.50, 20°; 7 %d, 8 %s und 50%iger"
    assert spans(text) == ["100%", "3,5 %", "12€", "$5.50", "20°", "7", "%d", "8", "%s", "50"]


@pytest.mark.parametrize(
    "text",
    ["die 90er", "a < b und c > d", "Preis: 5$", "der 2nd", "e{", "@ 5"],
)
def test_words_are_no_spans(text: str):
    assert [span for span in spans(text) if not re.fullmatch(r"\d+", span)] == []


def test_own_pattern_precedes_and_ends_in_time():
    assert spans("Ref. AB/17 vom 3.", own=own_spans([r"Ref\. \S+"])) == ["Ref. AB/17", "3"]
    with pytest.raises(UsageError, match="takes more than"):
        own_spans([r"(a|a|aa)+$"])("a" * 200 + "b")
    with pytest.raises(UsageError, match="no regular expression"):
        own_spans(["("])


PARTS = [
    *"ab1_ .,:/@#{}%$<>`wℹ☀🐶-+()\\'\"é中²",
    "www.",
    "http://",
    "%s",
    "A4",
    "12:30",
    "<b>",
    "1.234",
    "$HOME",
    "🇩🇪",
    "‼",
    "½",
    "--help",
    "a.de",
    "™",
    "x.js",
    "+",
    "1️⃣",
    "[",
    "_",
]


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_no_text_with_a_match_is_passed_over(text: str):
    assert bool(find_kept(text)) == any(pattern.search(text) for pattern in kept_rules().values())


def test_texts_without_words():
    assert not any(
        has_words(text, find_kept(text)) for text in ("", " ", "...", "4711", "🐶!", "{name}: %s", "https://a.de")
    )
    assert has_words("Hallo {name}", find_kept("Hallo {name}"))


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "{",
        "`",
        "1.",
        "%",
        "<a ",
        "{a,plural,",
        "http://a.de ",
        "@",
        "a.a@",
        "{a,plural,{x}",
        "😀",
        "\u200d☀",
        "www.",
        "http://a(",
        "http://a(b",
        "http://a()",
        "{ {x}",
        "{{x",
        "a.",
        "a.de",
        "a1",
        "a_",
        "a-",
        "/a",
        "a/",
        " /a",
        "1'000",
        "```a",
        "``a",
        "` a",
        "<% ",
        " --a-",
        "+1 ",
        "C:\\a\\",
        "__A_",
        "1️⃣",
        "🏴\U000e0067",
        "с\u0301",
    ],
)
def test_time_is_linear(part: str):
    text = part * (200_000 // len(part))
    assert all(one.start < one.end <= len(text) for one in find_kept(text, knows=lambda script: script == "Latin"))


@pytest.mark.parametrize(
    ("source", "output", "links", "expected"),
    [
        (
            "Siehe {x}, bitte, {y} und 🐶.",
            "See, please, and.",
            [(0, 0), (1, 1), (2, 2)],
            "See {x}, please, {y} and 🐶.",
        ),
        ("{x} läuft im Schnee %s", "Runs in snow.", [(0, 0), (1, 1), (2, 2)], "{x} Runs in snow %s."),
        ("Ein roter {x} Hund", "Un chien rouge", [(0, 0), (1, 2), (2, 1)], "Un chien rouge {x}"),
        ("Ein Hund ({x}) bellt.", "A dog barks.", [(1, 1), (2, 2)], "A dog ({x}) barks."),
        ("{x}", "", [], "{x}"),
        ("a {x} b {y} c", "A B C", [], "A {x} B {y} C"),
        ("Windows™ läuft", "Windows runs", [(0, 0), (1, 1)], "Windows™ runs"),
        ("Der <%= x %> Hund", "The dog", [(0, 0), (1, 1)], "The <%= x %> dog"),
    ],
)
def test_spans_are_put_beside_their_words(source: str, output: str, links: list[tuple[int, int]], expected: str):
    lifted = lift(source, find_kept(source))
    assert not find_kept(lifted.text)
    written, places = put_back(lifted, output, character_links(lifted.text, output, links))
    assert written == expected
    assert "".join(written[place] for place in places) == output
    for place, letter in zip(lifted.origins, lifted.text, strict=True):
        assert letter in (" ", source[place])
    left, right = word_places(lifted.text, source, lifted.origins), word_places(output, written, places)
    for one, other in links:
        assert lifted.text.split()[one].strip(".,") in source.split()[left[one]]
        assert output.split()[other].strip(".,") in expected.split()[right[other]]


def test_spans_of_one_place_keep_their_order():
    lifted = lift("Hund {x} {y}", (Kept(5, 8, "braces"), Kept(9, 12, "braces")))
    assert put_back(lifted, "dog", character_links("Hund", "dog", [(0, 0)])) == ("dog {x} {y}", [0, 1, 2])


def test_a_span_goes_where_both_of_its_neighbours_went():
    source = "Ein {x} Hund und ein {y} Mann"
    lifted = lift(source, find_kept(source))
    output = "A dog and a man"
    links = [CharacterLink(0, 3, 0, 1, 0.5), CharacterLink(0, 3, 10, 11, 0.6), CharacterLink(4, 8, 2, 5, 0.9)]
    assert put_back(lifted, output, links)[0].startswith("A {x} dog")


def test_spans_stand_between_words_of_scripts_without_spaces():
    lifted = lift("dog {x} runs", (Kept(4, 7, "braces"),))
    assert put_back(lifted, "狗在跑", [CharacterLink(0, 3, 0, 1), CharacterLink(4, 8, 2, 3)])[0] == "狗 {x} 在跑"


@pytest.mark.parametrize(
    ("text", "output", "wanted"),
    [
        ("a <b>c</b> d", "A C D", "A <b>C</b> D"),
        ("a <b>{x}</b> d", "A D", "A <b>{x}</b> D"),
        ("a </b> <i>d", "A D", "A</b> <i>D"),
        ("<b>a c</b>", "A C", "<b>A C</b>"),
        ("a <br/> c", "A C", "A <br/> C"),
    ],
)
def test_tags_touch_the_words_that_they_enclose(text: str, output: str, wanted: str):
    lifted = lift(text, find_kept(text))
    words = [(match.start(), match.end()) for match in re.finditer(r"\S+", lifted.text)]
    targets = [(match.start(), match.end()) for match in re.finditer(r"\S+", output)]
    links = [CharacterLink(*source, *target, 1.0) for source, target in zip(words, targets, strict=True)]
    assert put_back(lifted, output, links)[0] == wanted


def test_short_words_in_capitals_that_no_source_has_are_kept():
    words = {"usa", "der", "mann"}

    def kept(text: str) -> list[tuple[str, str]]:
        found = find_kept(text, lacks=lambda word: word.lower() not in words)
        return [(text[one.start : one.end], one.kind) for one in found]

    assert kept("Der ÖBB und NATO Mann, in den USA (WWF).") == [
        ("ÖBB", "acronym"),
        ("NATO", "acronym"),
        ("WWF", "acronym"),
    ]
    assert kept("JA, DER MANN KAM MIT DEM BMW. ÖL? NEIN, DVDS.") == [("BMW", "acronym"), ("DVDS", "acronym")]
    assert kept("Ein EU-Mann, ein LANGWORT, A, NGO's, NGO1") == [("NGO1", "identifier")]
