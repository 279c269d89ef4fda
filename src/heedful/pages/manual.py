"""Manual: the documents of this project as sections, printed by `heedful docs` or written as offline pages."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any, Final, final
from urllib.parse import unquote

from heedful.errors import FileRefused, UsageError, did_you_mean
from heedful.files.atomic_write import atomic_write
from heedful.files.bounded_read import read_json_object, read_text
from heedful.pages.document import document

DOCUMENTS: Final = ("start", "guide", "page", "serve", "engines", "settings", "attention", "extending")
"""Documents of the manual, in the order of reading; a wheel has them in the folder `manual` of the package."""
LANGUAGES: Final = ("en", "zh")
FORMULA: Final = re.compile(r"^\$\$(.+)\$\$$", re.MULTILINE)
"""Formula that stands by itself, in TeX."""
_CHINESE_TITLES: Final = {"engines": "模型的 ONNX 计算图", "settings": "设置"}
"""Titles in Chinese of documents that are in English only."""
_HEADING: Final = re.compile(r"(#{1,4}) +(.+?) *#*$")
_FENCE: Final = re.compile(r" *(```|~~~)")
_PICTURE: Final = re.compile(r'<img src="[^"]*" alt="([^"]*)"[^>]*>|!\[([^\]]*)\]\([^)]*\)')
"""Picture; the package has none of them, so that their descriptions stand in their places."""
_SWITCH: Final = re.compile(r"^\[(?:中文|English)\]\([^)]*\)\n", re.MULTILINE)
"""Line that leads to the same document in the other language."""


@final
@dataclass(frozen=True)
class Section:
    """Section of a document, with all below it."""

    page: str
    """Document that it is part of, one of `DOCUMENTS`."""
    anchor: str
    """Anchor of its English heading, such as ``bring-your-data``; that of a document's title is the document's name."""
    title: str
    text: str
    """Markdown, the heading included."""


def anchor_of(heading: str) -> str:
    """Make the anchor of a heading as GitHub does: lower case, blanks to hyphens, punctuation dropped.

    Example:
        >>> anchor_of("A score, with `forward`")
        'a-score-with-forward'
    """
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def sections(language: str = "en", names: Iterable[str] = DOCUMENTS) -> list[Section]:
    """List the sections of documents, in the order of reading.

    Args:
        language: en or zh; a document that has no such translation, or one of other headings, is in English.

    Raises:
        FileRefused: the package is incomplete.
    """
    listed: list[Section] = []
    for name in names:
        english = list(_cut(_read(name, "")))
        anchors = [name, *(anchor_of(title) for _, title, _ in english[1:])]
        own = list(_cut(_read(name, ".zh"))) if language == "zh" else english
        shown = own if len(own) == len(english) else english
        if language == "zh" and name in _CHINESE_TITLES:
            depth, _, text = shown[0]
            shown = [(depth, _CHINESE_TITLES[name], text), *shown[1:]]
        for anchor, (_, title, text) in zip(anchors, shown, strict=True):
            listed.append(Section(name, anchor, title.replace("`", ""), text))
    return listed


def find_section(topic: str, language: str = "en") -> Section:
    """Find the section about a topic.

    Args:
        topic: an anchor, or words of a heading in any order.

    Raises:
        UsageError: no heading has all of the words.
        FileRefused: the package is incomplete.

    Example:
        >>> find_section("bring-your-data").title, find_section("data bring").title
        ('Bring your data', 'Bring your data')
    """
    known = sections(language)
    words = anchor_of(topic).replace("-", " ").split()
    titles = {id(one): f"{one.anchor.replace('-', ' ')} {one.title.lower()}" for one in known}
    exact = [one for one in known if one.anchor == anchor_of(topic)]
    close = [one for one in known if words and all(word in titles[id(one)] for word in words)]
    if not (exact or close):
        hint = did_you_mean(anchor_of(topic), [one.anchor for one in known])
        raise UsageError(f"docs: no section about {topic!r}{hint}; list them: heedful docs --list")
    return (exact or close)[0]


def write_pages(folder: Path, language: str = "en") -> Path:
    """Write the manual as pages that a browser opens from disk.

    Args:
        folder: made if need be; pages of the same names are replaced.

    Returns:
        The first page.

    Raises:
        FileRefused: the package is incomplete.
        OSError: the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_page = {name: sections(language, [name]) for name in DOCUMENTS}
    places = {(one.page, anchor_of(one.title)): one.anchor for listed in by_page.values() for one in listed}
    links = (f'<a href="{name}.html">{escape(listed[0].title)}</a>' for name, listed in by_page.items())
    head = f'<nav style="display: flex; gap: 1rem; flex-wrap: wrap">{"".join(links)}</nav>'
    for name, listed in by_page.items():
        anchors = [one.anchor for one in listed]
        contents = "".join(f'<li><a href="#{one.anchor}">{escape(one.title)}</a></li>' for one in listed[1:])
        body = _as_html(name, listed[0].text, anchors, places)
        page = document(listed[0].title, [head, f"<details><summary>☰</summary><ul>{contents}</ul></details>", body])
        with atomic_write(folder / f"{name}.html", is_internal=True) as stream:
            stream.write(page.replace('<html lang="en">', f'<html lang="{language}">'))
    return folder / f"{DOCUMENTS[0]}.html"


def _read(name: str, suffix: str) -> str:
    """Text of a document; empty for no translation.

    Raises:
        FileRefused: there is no such document.
    """
    path = _file(f"{name}{suffix}.md")
    if path is None and not suffix:
        raise FileRefused(f"{name}.md of the manual is missing; install heedful anew")
    return _SWITCH.sub("", read_text(path)) if path else ""


def _file(name: str) -> Path | None:
    """File of the manual in the package, or beside it where it is run from its sources; None = there is none."""
    root = Path(__file__).resolve().parents[1]
    paths = (root / "manual" / name, root.parents[1] / "docs" / name)
    return next((path for path in paths if path.is_file()), None)


def _formulas() -> Mapping[str, str]:
    """MathML of the formulas by their TeX; empty where the file is missing, so that they stand as they were typed."""
    path = _file("formulas.json")
    return {source: str(mathml) for source, mathml in read_json_object(path).items()} if path else {}


def _cut(text: str) -> Iterator[tuple[int, str, str]]:
    """Depth, title and text of each section, with those below it."""
    lines, starts, fence = text.split("\n"), list[tuple[int, int, str]](), ""
    for number, line in enumerate(lines):
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
        elif not fence and (heading := _HEADING.match(line)):
            starts.append((number, len(heading[1]), heading[2]))
    for index, (start, depth, title) in enumerate(starts):
        ends = (number for number, other, _ in starts[index + 1 :] if other <= depth)
        yield depth, title, "\n".join(lines[start : next(ends, len(lines))]).strip() + "\n"


def _as_html(page: str, text: str, anchors: list[str], places: Mapping[tuple[str, str], str]) -> str:
    """HTML of a document, its first heading left out; links lead to the pages of the manual, or nowhere.

    Args:
        anchors: of its headings.
        places: anchor of each heading by its page and the anchor that its own language gives it.
    """
    from markdown_it import MarkdownIt

    parser: Any = MarkdownIt("commonmark").enable("table")
    formulas = _formulas()
    text = FORMULA.sub(lambda formula: formulas.get(formula[1], f"<pre>{escape(formula[1])}</pre>"), text)
    text = _PICTURE.sub(lambda picture: f"[{picture[1] or picture[2]}]", text)
    tokens: list[Any] = parser.parse(text)
    remaining = iter(anchors)
    for token in tokens:
        if token.type == "heading_open" and int(token.tag[1]) <= 4:
            token.attrSet("id", next(remaining, ""))
        elif token.type == "table_open":
            token.attrSet("class", "texts")
        for child in token.children or ():
            if child.type == "link_open" and not _lead(child, page, places):
                child.type, child.tag, child.attrs = "link_open", "span", {}
    html = str(parser.renderer.render(tokens, parser.options, {}))
    html = re.sub(r"<span>((?:(?!<span>).)*?)</a>", r"<span>\1</span>", html, flags=re.DOTALL)
    return html[html.index("</h1>") + 5 :] if "</h1>" in html else html


def _lead(link: Any, page: str, places: Mapping[tuple[str, str], str]) -> bool:
    """Let a link lead to a page of the manual; False = it cannot."""
    attributes: Mapping[str, str] = link.attrs
    path, mark, anchor = unquote(str(attributes["href"])).partition("#")
    if re.match(r"[a-z]+:", path):
        return True
    name = PurePosixPath(path).name.removesuffix(".md").removesuffix(".zh") if path else page
    if name not in DOCUMENTS or (path and not path.endswith(".md")):
        return False
    anchor = places.get((name, anchor), anchor)
    link.attrSet("href", f"{name}.html{mark}{anchor}" if path else f"#{anchor}")
    return True
