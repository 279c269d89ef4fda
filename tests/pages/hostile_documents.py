"""Documents of every format with payloads: in their texts and attributes, and as translations of their texts.

Each written document is opened in a browser: HTML, Markdown and JSON as pages have them, plain texts as they are, and
all other formats as if they were HTML, as careless programs do: what is escaped for the format is escaped there too.
"""

import html
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from markdown_it import MarkdownIt

from heedful.documents.html import HtmlMarkup
from heedful.documents.markup_rules import HTML, XHTML, MarkupRules, TagHandling
from heedful.documents.table import FORMATS
from heedful.text.tagged_text import TaggedText
from tests.documents import made
from tests.pages.browser import Tab

READ: Final = ("title", "alt", "placeholder", "aria-label", "aria-description")
"""Attributes that are translated."""
STAY: Final = ("srcset", "style", "class", "id", "data-text", "content", "value", "longdesc", "summary")
"""Attributes that stay as they are."""


class Hostile(NamedTuple):
    """Document, and how a program shows it."""

    name: str
    content: str | bytes
    write: Callable[[str | bytes, Callable[[str], str]], str]
    """Markup of the document with translations."""


def _numeric(text: str) -> str:
    return "".join(f"&#{ord(character)};" for character in text)


def _attributes(payload: str, names: Sequence[str]) -> str:
    """Attributes with a payload in all ways in which a value can be written."""
    single = html.escape(payload, quote=False).replace("'", "&#39;")
    written = (f'"{html.escape(payload)}"', f"'{single}'", _numeric(payload))
    return "".join(f"<p {name}={value}>a <img {name}={value}> b</p>" for name in names for value in written)


def _page(payloads: Sequence[str]) -> str:
    texts = "".join(
        f"<p>a <b>{html.escape(one)}</b> c</p><ul><li>{_numeric(one)}</ul><table><td>{html.escape(one)}</table>"
        f"<select><option label='{_numeric(one)}'>{html.escape(one)}</select>"
        for one in payloads
    )
    return texts + "".join(_attributes(one, READ + STAY) for one in payloads) + f"<title>{payloads[0]}</title>"


def _xhtml(payloads: Sequence[str]) -> str:
    return (
        "<html>"
        + "".join(f"<p title={json.dumps(html.escape(p))}>a {html.escape(p)}</p>" for p in payloads)
        + "</html>"
    )


def _in_markup(rules: MarkupRules) -> Callable[[Any, Callable[[str], str]], str]:
    def write(content: Any, translate: Callable[[str], str]) -> str:
        markup = HtmlMarkup(content, rules)
        return markup.write([_translated(each, translate) for each in markup.passages])

    return write


def _translated(source: TaggedText, translate: Callable[[str], str]) -> TaggedText:
    """Translation of a passage, with the tags of another text behind it, so that they divide no payload."""
    text = translate(source.text)
    if text.startswith(source.text):
        return TaggedText(text, source.tags)
    return TaggedText(text, tuple(tag._replace(start=len(text), end=len(text)) for tag in source.tags))


def _in_file(ending: str, show: Callable[[bytes], str]) -> Callable[[Any, Callable[[str], str]], str]:
    def write(content: Any, translate: Callable[[str], str]) -> str:
        opened = FORMATS[ending](content if isinstance(content, bytes) else content.encode(), 1 << 30)
        outputs = [_translated(each, translate) for each in opened.passages]
        return show(opened.write(outputs))

    return write


def _as_text(content: bytes) -> str:
    return content.decode()


def _members(content: bytes) -> str:
    """Texts of all XML parts of an archive, as HTML."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.endswith((".xml", ".xhtml", ".rels", ".ncx"))]
        return "".join(archive.read(name).decode() for name in names)


def _rendered(content: bytes) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(content.decode()))


def _in_script(content: bytes) -> str:
    """JSON as pages have it."""
    json.loads(content)
    return f"<script type=application/json>{content.decode()}</script>"


def _escaped_markdown(payload: str) -> str:
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", payload)


def _subtitles(payloads: Sequence[str], is_vtt: bool) -> str:
    time = "00:00:01.000 --> 00:00:02.000" if is_vtt else "00:00:01,000 --> 00:00:02,000"
    texts = [html.escape(payload, quote=False) if is_vtt else re.sub("[<{]", " ", payload) for payload in payloads]
    cues = "".join(f"{number}\n{time}\n<i>A.</i> {text}.\n\n" for number, text in enumerate(texts, 1))
    return f"WEBVTT\n\n{cues}" if is_vtt else cues


def _archive(make: Callable[[], bytes], payloads: Sequence[str], part: str, texts: str) -> bytes:
    """A document of a library with more paragraphs in one of its parts."""
    with zipfile.ZipFile(io.BytesIO(make())) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    before, end, after = members[part].decode().rpartition(texts)
    return made.archive({**members, part: (before + "".join(payloads) + end + after).encode()})


@cache
def documents(payloads: Sequence[str]) -> tuple[Hostile, ...]:
    """Documents of every format that hold each payload, escaped as the format asks for."""
    escaped = [html.escape(payload, quote=False) for payload in payloads]
    xliff = "".join(
        f'<unit id="u{i}"><segment><source>{text}</source></segment></unit>' for i, text in enumerate(escaped)
    )
    po = "".join(
        f'msgid {json.dumps(payload + str(i), ensure_ascii=False)}\nmsgstr ""\n\n' for i, payload in enumerate(payloads)
    )
    properties = "".join(f"k{i}={json.dumps(payload)[1:-1]}\n" for i, payload in enumerate(payloads))
    header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    texts = json.dumps({str(index): payload for index, payload in enumerate(payloads)}).replace("<", "\\u003c")
    markdown = "\n\n".join(f"a *{_escaped_markdown(p)}*\n\n| a |\n|---|\n| {_escaped_markdown(p)} |" for p in payloads)
    word = [f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in escaped]
    odt = [f"<text:p>{text}</text:p>" for text in escaped]
    slide = [f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>" for text in escaped]
    page = _xhtml(payloads)
    return (
        Hostile("html", _page(payloads), _in_markup(HTML)),
        Hostile("xhtml", page, _in_markup(XHTML)),
        Hostile("xml of a request", page, _in_markup(TagHandling("xml").rules(page))),
        Hostile(
            "epub",
            made.archive({"mimetype": b"application/epub+zip", "c.xhtml": page.encode()}),
            _in_file(".epub", _members),
        ),
        Hostile("docx", _archive(made.word, word, "word/document.xml", "<w:sectPr"), _in_file(".docx", _members)),
        Hostile(
            "pptx",
            _archive(made.presentation, slide, "ppt/slides/slide1.xml", "</p:txBody>"),
            _in_file(".pptx", _members),
        ),
        Hostile("odt", _archive(made.open_text, odt, "content.xml", "</office:text>"), _in_file(".odt", _members)),
        Hostile(
            "odp",
            _archive(made.open_presentation, odt, "content.xml", "</draw:text-box>"),
            _in_file(".odp", _members),
        ),
        Hostile("md", markdown, _in_file(".md", _rendered)),
        Hostile("srt", _subtitles(payloads, False), _in_file(".srt", _as_text)),
        Hostile("vtt", _subtitles(payloads, True), _in_file(".vtt", _as_text)),
        Hostile(
            "xliff",
            '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="de"><file id="f">'
            f"{xliff}</file></xliff>",
            _in_file(".xlf", _as_text),
        ),
        Hostile("json", texts, _in_file(".json", _in_script)),
        Hostile("arb", texts, _in_file(".arb", _in_script)),
        Hostile("po.txt", header + po, _in_file(".po", _as_text)),
        Hostile("properties.txt", properties, _in_file(".properties", _as_text)),
        Hostile("txt", "\n".join(payloads), _in_file(".txt", _as_text)),
    )


def translations(payloads: Sequence[str]) -> Iterator[tuple[str, Callable[[str], str]]]:
    """Translations of texts: the same, longer, and the payloads one after the other."""
    yield "as they are", lambda text: text
    yield "longer", lambda text: f"{text} x"
    for shift in (0, 1):
        known: dict[str, int] = {}
        # Each text has one translation, and all payloads occur.
        yield (
            f"payloads, {shift}",
            lambda text, known=known, shift=shift: payloads[
                (known.setdefault(text, len(known)) + shift) % len(payloads)
            ],
        )


def alive(browser: Any, folder: Path, payloads: Sequence[str], names: str = "") -> Iterator[str]:
    """Translate each document in each way, open it, and yield the names of those whose scripts ran.

    Args:
        names: part of the names of the translations to try.
    """
    tab = Tab(browser, "about:blank", "body")
    for one, (name, translate) in product(documents(payloads), [*translations(payloads)]):
        if names not in name:
            continue
        is_text = one.name.endswith("txt")
        path = folder / (one.name if is_text else f"{one.name}.html")
        head = "" if is_text else "<!doctype html><meta charset=utf-8><body>"
        path.write_text(head + one.write(one.content, translate), encoding="utf-8", newline="\n")
        tab.page.goto(path.as_uri())
        tab.page.wait_for_timeout(30)
        if tab.page.evaluate("Boolean(window.hacked)"):
            yield f"{one.name}, {name}"
    tab.context.close()
