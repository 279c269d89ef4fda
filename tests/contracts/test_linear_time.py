"""Parsers of what others send: their time grows with the length of the input, whatever is in it.

Time is processor time, the smallest of several runs, in proportion to that of a reference, so that other work on the
machine does not count.
"""

import gc
import re
import time
from collections.abc import Callable, Iterator

import pytest

from heedful.cli import failures
from heedful.data import tmx
from heedful.text import kept_places, segments, stories
from tests.contracts.hostile_parsers import PARSERS
from tests.contracts.hostile_structures import READERS, STRUCTURES
from tests.thorough import thorough

LARGEST = 160_000
DOUBLINGS = (4, 1)
"""Numbers of doublings from a smaller input, of 10 and 80 KB, to the largest."""
MOST_GROWTH = 2.5
"""Largest growth of time when the length doubles."""
MOST_SECONDS = 0.5
"""Processor time of the largest input, as docs/reliability.md promises."""
QUICK_SECONDS = 1.0
"""The same for the tests of every change: twice as much, so that none fails by what else the machine does; what is not
linear takes far more."""
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


Family = str | tuple[str, str] | Callable[[int], str]


def grown(family: Family, size: int) -> str:
    if callable(family):
        return family(size)
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


def growth(
    run: Callable[[str], object],
    family: Family,
    most_seconds: float = QUICK_SECONDS,
    largest: int = LARGEST,
    rounds: int = 12,
) -> str:
    """What is wrong with the time of a parser on a family of inputs; empty if nothing.

    The smallest times of all rounds are compared with each other and with those of a reference: other work on
    the machine slows all down, but not all rounds of a quadratic parser to less than the half of the others. Each round
    waits longer than the one before, to outlast the other work.
    """
    whole, unit = float("inf"), float("inf")
    smaller = dict.fromkeys(DOUBLINGS, float("inf"))
    grew: dict[int, float] = {}
    for waited in range(rounds):
        time.sleep(0.1 * waited)
        whole = min(whole, seconds(lambda: run(grown(family, largest))))
        if whole < LEAST_SECONDS * 4:
            return ""
        for number in DOUBLINGS:
            smaller[number] = min(smaller[number], seconds(lambda size=largest >> number: run(grown(family, size))))
        unit = min(unit, seconds(reference), seconds(reference))
        grew = {
            number: taken
            for number, taken in smaller.items()
            if whole > max(MOST_GROWTH**number * taken, 2**number * LEAST_SECONDS)
        }
        if not grew and whole / unit * REFERENCE_SECONDS <= most_seconds:
            return ""
    name = "" if callable(family) else f"{family!r}: "
    taken = f"{name}{whole:.3f} s, that is {whole / unit * REFERENCE_SECONDS:.2f} s on a machine of its own"
    return "; ".join([taken, *(f"{part:.3f} s for 1/{2**number} of it" for number, part in grew.items())])


KNOWN = (
    ("html", ("<svg><a>", "</b>")),  # 17.7 s once
    ("html", "<p><b a=1>"),  # a tree of HTML5 grows with the square
    ("html", "<!---->"),
    ("html", ("<b>", "</i>")),
    ("xml", "<a>"),
    ("xml", "<!DOCTYPE a [<!--"),
    ("xml", "&c; "),
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
    ("po", "\\"),
    ("odt", " "),
    ("nested odt", "a"),
    ("nested xliff", "a"),
    ("pptx", "a "),
    ("epub", "<b>x"),
    ("tmx", " \n"),
    ("tbx", " "),
    ("csv", "a "),
    ("raw csv", '"'),
    ("story", "array(["),
)
"""Inputs that took long in an earlier version, or do so in other programs."""


@pytest.mark.parametrize(("parser", "family"), KNOWN)
def test_known_attacks_take_no_longer_than_their_length(parser: str, family: str | tuple[str, str]):
    assert growth(PARSERS[parser], family) == ""


KNOWN_STRUCTURES = (
    ("docx", "a large format, then runs of it"),  # 1.8 s once
    ("docx", "words in text boxes"),  # 2.6 s once
    ("odt", "words in notes"),
    ("xliff", "segments in segments"),  # never ended
    ("xliff", "units in groups"),
    ("epub", "paragraphs"),
    ("md", "rows"),
    ("md", "nested notes"),
    ("md", "open math in lists"),
    ("md", "open keys"),
    ("tmx", "languages, then units"),  # 1.6 s once
    ("tmx", "a unit within others"),
    ("tbx", "a concept within others"),  # 2.9 million terms once
    ("tsv", "empty lines"),
)


@pytest.mark.parametrize(("reader", "name"), KNOWN_STRUCTURES)
def test_known_structures_take_no_longer_than_their_length(reader: str, name: str):
    assert growth(READERS[reader], STRUCTURES[reader][name]) == ""


def test_a_long_quoted_cell_takes_no_longer_than_its_length():
    """Each doubled quote was a place to go back to, and those of such a cell fill more than an allocator keeps."""
    assert growth(PARSERS["csv"], '"', largest=2 * LARGEST) == ""


@thorough
@pytest.mark.parametrize("parser", PARSERS)
def test_time_grows_with_the_length(parser: str):
    families = (*FAMILIES, *PAIRED)
    assert [fault for family in families if (fault := growth(PARSERS[parser], family, MOST_SECONDS))] == []


@thorough
@pytest.mark.parametrize("reader", STRUCTURES)
def test_time_grows_with_the_number_of_parts(reader: str):
    families = STRUCTURES[reader].items()
    faults = {name: growth(READERS[reader], family, MOST_SECONDS) for name, family in families}
    assert {name: fault for name, fault in faults.items() if fault} == {}


UNREAD = {
    *(("docx", name) for name in ("empty paragraphs", "deep insertions", "without an end", "names")),
    *(("xliff", name) for name in ("done", "deep codes")),
    *(("csv", name) for name in ("open cells", "uneven rows")),
    ("md", "code"),
    *(("tmx", name) for name in ("segments", "languages", "languages, then units")),
    *(
        ("odt", "deep spans"),
        ("odt", "names"),
        ("json", "long"),
        ("po", "obsolete"),
        ("html", "frames"),
        ("vtt", "notes"),
    ),
}
"""Families in which nothing is to be translated, or which are refused."""


def test_structures_are_read():
    unread = {
        (reader, name)
        for reader, families in STRUCTURES.items()
        for name, family in families.items()
        if not READERS[reader](family(10_000))
    }
    assert unread == UNREAD


@pytest.mark.parametrize("parser", [name for name in PARSERS if name not in ("raw json", "raw csv", "srt cues")])
def test_harmless_texts_are_read(parser: str):
    assert PARSERS[parser]("a b. c") != 0


SEARCHED = (
    failures._SPACES,
    tmx._BREAKS,
    kept_places._SPACE_BEFORE_MARK,
    segments._SOFT_BREAK,
    stories._SEPARATORS,
    stories._ARRAY,
)
"""Regular expressions that are searched for in texts of others, and were quadratic in an earlier version."""


def slow_families(pattern: re.Pattern[str], size: int = 10_000) -> Iterator[str]:
    """Inputs on which a search takes longer than 0.2 s, where a linear one takes a few milliseconds."""
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
        if time.process_time() - started > 0.2:
            yield family


def test_searches_in_runs_of_spaces_are_linear():
    assert {pattern.pattern: slow for pattern in SEARCHED if (slow := [*slow_families(pattern)])} == {}
    assert next(slow_families(re.compile(r"\s*[\n\r]\s*"))) == " "


def test_a_quadratic_parser_is_noticed():
    quadratic = re.compile(r"\s+$")

    def strip(text: str) -> None:
        quadratic.search(text[: len(text) // 40] + "x")

    assert growth(strip, " ", rounds=2) != ""
