"""Parsers of what others send: their time grows with the length of the input, whatever is in it.

Time is the number of lines of Python that run, and the processor time of the expressions between them: the smallest of
several runs, so that other work on the machine does not count.
"""

import json
import re
import time
from collections.abc import Callable

import pytest

from heedful.cli import failures
from heedful.data import tmx
from heedful.documents.html import HtmlMarkup
from heedful.documents.markup_rules import TagHandling
from heedful.documents.table import FORMATS
from heedful.errors import DataError
from heedful.text import kept_places, segments, stories
from heedful.text.segments import split
from tests.documents import made
from tests.thorough import thorough

SMALLEST, LARGEST = 10_000, 160_000
MOST_GROWTH = 2.5
"""Largest growth of time when the length doubles."""
MOST_SECONDS = 0.5
"""Processor time of the largest input, on a machine of its own."""
LEAST_SECONDS = 0.004
"""Time below which growth is not measured."""

FAMILIES = (
    *(
        " ",
        "\n",
        "\t ",
        "<",
        ">",
        "&",
        "&amp;",
        '"',
        "'",
        "0",
        "a",
        "a ",
        "a. ",
        "-",
        "--> ",
        "_",
        "*",
        "`",
        "` ",
        "[",
        "](",
    ),
    *("![x](", "<!--", "<!---->", "<![CDATA[", "<a ", "<a>", "<b>x", "</b>", "<b><p>", "<br>a", "<br/>a", "<p><b a=1>"),
    *("<li>", "<td>", "<svg>", "<svg><desc>", "<math><mi>", "<script>", "<script><!--", "<title>", "<a b=", "<a b='"),
    *(
        "<code>",
        "<p translate=no>",
        "{",
        "{{",
        "}",
        "[[",
        "\\",
        "\\\\u",
        "é",
        "一",
        "\0",
        "。",
        "|",
        "| a ",
        "> ",
        "# ",
    ),
    *("- ", "1. ", "=", "a=b\n", "a:\\\n", "@"),
)
PAIRED = ((("<svg>" + "<a>"), "</b>"), ("<b>", "</i>"), ("[", "]"), ("<a>", "</a>"), ("*a", "a*"), ("<b>a ", "</b>"))
"""Inputs whose first half opens and whose second half closes."""


def cue(text: str) -> str:
    return f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n"


def xliff(text: str) -> str:
    escaped = re.sub(r"[\0&<>]", "x", text)
    return (
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="de"><file id="f"><unit id="u">'
        f"<segment><source>{escaped}</source></segment></unit></file></xliff>"
    )


def document(ending: str, frame: Callable[[str], str] = str) -> Callable[[str], None]:
    def run(text: str) -> None:
        try:
            opened = FORMATS[ending](frame(text).encode(), 10_000_000)
            opened.write([type(each)(each.text + "x", each.tags) for each in opened.passages])
        except DataError:
            pass  # a refusal is an answer

    return run


def word(text: str) -> None:
    plain = re.sub(r"[^\t\n\x20-\ud7ff]|[&<>]", "x", text)
    runs = "".join(f"<w:r><w:t>{plain[start : start + 50]}</w:t><w:br/></w:r>" for start in range(0, len(plain), 50))
    namespace = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    part = f"<w:document {namespace}><w:body><w:p>{runs}</w:p></w:body></w:document>"
    opened = FORMATS[".docx"](made.archive({"word/document.xml": part.encode()}), 10_000_000)
    opened.write([type(each)(each.text + "x", each.tags) for each in opened.passages])


def xml(text: str) -> None:
    HtmlMarkup(text, TagHandling("xml").rules(text))


PARSERS: dict[str, Callable[[str], object]] = {
    "html": document(".html"),
    "xml": xml,
    "srt": document(".srt", cue),
    "srt cues": document(".srt", lambda text: "".join(map(cue, text.split(" ")))[: len(text)]),
    "vtt": document(".vtt", lambda text: "WEBVTT\n\n" + cue(text)),
    "md": document(".md"),
    "json": document(".json", lambda text: json.dumps({"a": text})),
    "raw json": document(".json"),
    "properties": document(".properties"),
    "xliff": document(".xlf", xliff),
    "docx": word,
    "segments": split,
}


def grown(family: str | tuple[str, str], size: int) -> str:
    if isinstance(family, str):
        return family * (size // len(family))
    opening, closing = family
    return opening * (size // 2 // len(opening)) + closing * (size // 2 // len(closing))


def seconds(run: Callable[[str], object], text: str, repeats: int = 2) -> float:
    best = float("inf")
    for _ in range(repeats):
        started = time.process_time()
        run(text)
        best = min(best, time.process_time() - started)
    return best


def growth(run: Callable[[str], object], family: str | tuple[str, str]) -> str:
    """What is wrong with the time of a parser on a family of inputs; empty if nothing."""
    largest = seconds(run, grown(family, LARGEST), 1)
    if largest < LEAST_SECONDS * 4:
        return ""
    half = seconds(run, grown(family, LARGEST // 2), 1)
    if largest <= MOST_GROWTH * half and largest <= MOST_SECONDS:
        return ""
    # Once more, because other work may have stood in the way.
    half, largest = (seconds(run, grown(family, size), 3) for size in (LARGEST // 2, LARGEST))
    if largest > MOST_GROWTH * half and half > LEAST_SECONDS:
        return f"{family!r}: {half:.3f} s, and {largest:.3f} s for twice the length"
    return f"{family!r}: {largest:.2f} s" if largest > 2 * MOST_SECONDS else ""


KNOWN = (
    ("html", ("<svg><a>", "</b>")),  # 17.7 s once
    ("html", "<p><b a=1>"),  # a tree of HTML5 grows with the square
    ("html", "<!---->"),
    ("xml", "<a>"),
    ("srt", "<"),  # 8.4 s for 40 KB once
    ("srt", "{"),
    ("md", "` "),
    ("md", "[["),  # 2.4 s once
    ("md", "![x]("),
    ("docx", " "),
    ("segments", " "),
    ("segments", "1. "),
    ("segments", "str.\t"),
)
"""Inputs that took long in an earlier version, or do so in other programs."""


@pytest.mark.parametrize(("parser", "family"), KNOWN)
def test_known_attacks_take_no_longer_than_their_length(parser: str, family: str | tuple[str, str]):
    assert growth(PARSERS[parser], family) == ""


@thorough
@pytest.mark.parametrize("parser", PARSERS)
def test_time_grows_with_the_length(parser: str):
    assert [fault for family in (*FAMILIES, *PAIRED) if (fault := growth(PARSERS[parser], family))] == []


SEARCHED = (
    failures._SPACES,
    tmx._BREAKS,
    kept_places._SPACE_BEFORE_MARK,
    segments._SOFT_BREAK,
    stories._SEPARATORS,
)
"""Regular expressions that are searched for in texts of others, and were quadratic in an earlier version."""


def slow_families(pattern: re.Pattern[str], size: int = 20_000) -> list[str]:
    """Inputs on which a search takes longer than a second, where a linear one takes a few milliseconds."""
    slow: list[str] = []
    for family in (" ", "\t", " \t", "\n", "\u3000", "a ", "| ", "0", "."):
        started = time.process_time()
        for _ in pattern.finditer(family * (size // len(family)) + "\1"):
            pass
        if time.process_time() - started > 1.0:
            slow.append(family)
    return slow


def test_searches_in_runs_of_spaces_are_linear():
    assert {pattern.pattern: slow for pattern in SEARCHED if (slow := slow_families(pattern))} == {}
    assert slow_families(re.compile(r"\s*[\n\r]\s*"))


def test_a_quadratic_parser_is_noticed():
    quadratic = re.compile(r"\s+$")

    def strip(text: str) -> None:
        quadratic.search(text[: len(text) // 40] + "x")

    assert growth(strip, " ") != ""
