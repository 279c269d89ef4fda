"""Parsers of what others send: their time grows with the length of the input, whatever is in it.

Time is processor time, the smallest of several runs, in proportion to that of a reference, so that other work on the
machine does not count.
"""

import gc
import json
import re
import time
from collections.abc import Callable, Iterator

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
MOST_SECONDS = 1.0
"""Processor time of the largest input at which a test fails: twice the 0.5 s of docs/reliability.md, so that no test
fails by what else the machine does; what is not linear takes far more."""
REFERENCE_SECONDS = 0.0084
"""Processor time of the reference there: an AMD EPYC of 2026, Python 3.11."""
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


def seconds(work: Callable[[], object]) -> float:
    """Processor time, without that of the garbage collector, which depends on what other tests have left."""
    has_collector = gc.isenabled()
    gc.disable()
    try:
        started = time.process_time()
        work()
        return time.process_time() - started
    finally:
        if has_collector:
            gc.enable()


def reference() -> None:
    counts: dict[int, tuple[int, int]] = {}
    total = 0
    for number in range(100_000):
        total += number
        counts[number & 1023] = number, total


def growth(run: Callable[[str], object], family: str | tuple[str, str]) -> str:
    """What is wrong with the time of a parser on a family of inputs; empty if nothing.

    The smallest times of up to seven rounds are compared with each other and with those of a reference: other work on
    the machine slows all down, but not all rounds of a quadratic parser to less than the half of the others.
    """
    half, whole, unit = float("inf"), float("inf"), float("inf")
    for _ in range(7):
        whole = min(whole, seconds(lambda: run(grown(family, LARGEST))))
        if whole < LEAST_SECONDS * 4:
            return ""
        half = min(half, seconds(lambda: run(grown(family, LARGEST // 2))))
        unit = min(unit, seconds(reference), seconds(reference))
        is_linear = whole <= MOST_GROWTH * half or half <= LEAST_SECONDS
        if is_linear and whole / unit * REFERENCE_SECONDS <= MOST_SECONDS:
            return ""
    taken = f"{family!r}: {whole:.3f} s, that is {whole / unit * REFERENCE_SECONDS:.2f} s on a machine of its own"
    return taken if is_linear else f"{taken}; {half:.3f} s for the half of it"


KNOWN = (
    ("html", ("<svg><a>", "</b>")),  # 17.7 s once
    ("html", "<p><b a=1>"),  # a tree of HTML5 grows with the square
    ("html", "<!---->"),
    ("xml", "<a>"),
    ("srt", "<"),  # 8.4 s for 40 KB once
    ("srt", "{"),
    ("md", "` "),
    ("md", "[["),  # 2.4 s once
    ("md", "a:\\\n"),  # a passage a line
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
    stories._ARRAY,
)
"""Regular expressions that are searched for in texts of others, and were quadratic in an earlier version."""


def slow_families(pattern: re.Pattern[str], size: int = 20_000) -> Iterator[str]:
    """Inputs on which a search takes longer than a second, where a linear one takes a few milliseconds."""
    for family in (
        " ",
        "\t",
        " \t",
        "\n",
        "\u3000",
        "a ",
        "| ",
        "0",
        ".",
        "array([",
        "array([], dtype=",
        'array(["], dtype="',
    ):
        started = time.process_time()
        for _ in pattern.finditer(family * (size // len(family)) + "\1"):
            pass
        if time.process_time() - started > 1.0:
            yield family


def test_searches_in_runs_of_spaces_are_linear():
    assert {pattern.pattern: slow for pattern in SEARCHED if (slow := [*slow_families(pattern)])} == {}
    assert next(slow_families(re.compile(r"\s*[\n\r]\s*"))) == " "


def test_a_quadratic_parser_is_noticed():
    quadratic = re.compile(r"\s+$")

    def strip(text: str) -> None:
        quadratic.search(text[: len(text) // 12] + "x")

    assert growth(strip, " ") != ""
