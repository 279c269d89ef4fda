"""Pages of the site from the documents of this folder: cut at their headings, with links that follow the cut."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
LONGEST: Final = 15_000
"""Most bytes of prose of a page; a longer section is cut at the headings below."""
LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(<?([^)\s>]+)>?\)")
OBJECTS: Final = "reference/python/"
"""Pages whose places are made by the generator, by the dotted names of objects."""
LINK_OR_CODE: Final = re.compile(LINK.pattern + r"|\0(\d+)\0")
"""Link, which may enclose code, or code by its number."""
SOURCE: Final = re.compile(r'(src|href)="([^"]+)"')
HEADING: Final = re.compile(r"(#{1,6}) +(.+?) *#*$")
RULE: Final = re.compile(r" *\|[ :|-]+\| *$")
"""Line between the head of a table and its rows."""
FENCE: Final = re.compile(r"( *)(```|~~~)")
LANGUAGES: Final = re.compile(r"^\[(?:中文|English)\]\([^)]*\)\n", re.MULTILINE)
"""Line that leads to the same document in the other language; the site has a menu."""
COMMENT: Final = re.compile(r"^<!--.*?-->\n", re.MULTILINE)


@dataclass
class Document:
    """Markdown document that becomes one page or several."""

    source: str
    """Path from the root of the project, which links are relative to; the English one for both languages."""
    address: str
    """Address of its first page, without suffix; further pages stand in a folder of this name."""
    text: str
    is_translated: bool = True
    """Whether the text is in the language of the site."""
    longest: int | None = LONGEST
    """Most bytes of a section of the second level that stays whole; None = one page."""
    tables: int | None = None
    """Most tables of a section that stays whole; None = any number."""


@dataclass
class Page:
    """One page of the site."""

    document: Document
    address: str
    title: str
    text: str
    children: list["Page"] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    """Anchors of its headings, in order."""
    lists_children: bool = False
    """Whether its text has links to all of its children."""
    beside: list["Page"] = field(default_factory=list)
    """Pages of other documents that it lists after its children."""


def anchor_of(heading: str) -> str:
    """Anchor of a heading: lower case, blanks to hyphens, punctuation dropped."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")


def lines_with_code(text: str) -> Iterator[tuple[str, bool]]:
    """Lines of a document, and whether each is part of a fenced block."""
    fence = ""
    for line in text.split("\n"):
        match = FENCE.match(line)
        if fence:
            yield line, True
            fence = "" if line.strip() == fence else fence
        else:
            fence = match[2] if match else ""
            yield line, bool(match)


def cut(text: str, depth: int) -> list[str]:
    """Cut a text in front of every heading of a depth."""
    parts: list[list[str]] = [[]]
    for line, is_code in lines_with_code(text):
        match = None if is_code else HEADING.match(line)
        if match and len(match[1]) == depth:
            parts.append([])
        parts[-1].append(line)
    return ["\n".join(part) for part in parts]


def tables_of(text: str) -> int:
    """Number of tables of a text."""
    return sum(bool(RULE.match(line)) for line, is_code in lines_with_code(text) if not is_code)


def is_to_be_cut(text: str, longest: int | None, tables: int | None) -> bool:
    """True for a text that is too long for one page, or has too many tables."""
    return len(text.encode()) > (longest or 0) or (tables is not None and tables_of(text) > tables)


def title_of(text: str) -> str:
    """First heading of a text, without marks."""
    heading = next((HEADING.match(line) for line, is_code in lines_with_code(text) if not is_code and line[:1] == "#"))
    return without_brackets(LINK.sub(r"\2", heading[2])).replace("`", "") if heading else ""


def without_brackets(heading: str) -> str:
    """Heading of a version, whose brackets are for links that a changelog may have below."""
    return re.sub(r"^\[([^\]]+)\](?!\()", r"\1", heading)


def raised(text: str) -> str:
    """Raise all headings so that the first is of the first level."""
    depths = [len(m[1]) for line, is_code in lines_with_code(text) if not is_code and (m := HEADING.match(line))]
    by = depths[0] - 1 if depths else 0
    return "\n".join(
        line if is_code or not HEADING.match(line) else line[by:] for line, is_code in lines_with_code(text)
    )


def pages_of(document: Document, english: str) -> Page:
    """Cut a document into pages; those of a translation have the addresses of the English ones.

    Args:
        document: of either language.
        english: text of the English document, whose headings give the addresses.

    Returns:
        The first page, with the others as children.

    Raises:
        ValueError: the two languages have different headings.
    """
    if document.longest is None:
        return Page(document, document.address, title_of(document.text), document.text)
    return _cut_page(document, document.text, english, 2, document.address)


def _cut_page(document: Document, text: str, english: str, depth: int, address: str) -> Page:
    parts, english_parts = cut(text, depth), cut(english, depth)
    if len(parts) != len(english_parts):
        raise ValueError(f"{document.source}: {len(parts)} and {len(english_parts)} sections in the two languages")
    page = Page(document, address, title_of(parts[0]), parts[0])
    for part, english_part in zip(parts[1:], english_parts[1:], strict=True):
        below = (
            f"{address.removesuffix('/index')}/{anchor_of(title_of(english_part)).encode('ascii', 'ignore').decode()}"
        )
        is_too_much = is_to_be_cut(english_part, document.longest, document.tables)
        if is_too_much and depth < 3 and len(cut(english_part, depth + 1)) > 1:
            page.children.append(_cut_page(document, part, english_part, depth + 1, f"{below}/index"))
        else:
            page.children.append(Page(document, below, title_of(part), part))
    return page


def walk(pages: Iterable[Page]) -> Iterator[Page]:
    """Pages with all pages below them, in the order of reading."""
    for page in pages:
        yield page
        yield from walk(page.children)


def addresses(pages: Iterable[Page]) -> dict[tuple[str, str], tuple[str, str]]:
    """Address of every heading of every document; notes the anchors of each page in order.

    Returns:
        From (document, anchor) to (address, anchor); the anchor "" is the document itself.
    """
    where: dict[tuple[str, str], tuple[str, str]] = {}
    for page in walk(pages):
        source = page.document.source
        where.setdefault((source, ""), (page.address, ""))
        page.anchors = []
        for line, is_code in lines_with_code(page.text):
            if is_code or not (match := HEADING.match(line)):
                continue
            anchor, count = anchor_of(match[2]), 0
            while (source, unique := f"{anchor}-{count}" if count else anchor) in where:
                count += 1
            where[source, unique] = (page.address, unique if page.anchors else "")
            page.anchors.append(unique)
    return where


def rendered(
    page: Page, where: Mapping[tuple[str, str], tuple[str, str]], pictures: set[str], notice: str = "", lead: str = ""
) -> str:
    """Text of a page as the site generator reads it.

    Args:
        page: to write, after `addresses`.
        where: from `addresses`.
        pictures: receives the pictures that the page shows, from the root of the project.
        notice: line below the title, such as that the page is not translated.
        lead: line above the list of the pages below.

    Returns:
        Markdown with anchors, links between pages, and code in lists indented as the generator wants it.
    """
    anchors = iter(page.anchors)
    out: list[str] = []
    indent, was_code = 0, False
    for line, is_code in lines_with_code(raised(COMMENT.sub("", LANGUAGES.sub("", page.text)))):
        if is_code:
            indent = indent if was_code else len(line) - len(line.lstrip())
            # A block within a list stands four blanks to the right there.
            out.append(" " * 4 + line[indent:] if 0 < indent < 4 and line else line)
            was_code = not (was_code and line.strip() in ("```", "~~~"))
            continue
        was_code = False
        text = _linked(line, page, where, pictures)
        if match := HEADING.match(line):
            text = f"{match[1]} {without_brackets(text.removeprefix(match[1]).lstrip())} {{ #{next(anchors)} }}"
        out.append(text)
        if match and notice and match[1] == "#":
            out += ["", notice, ""]
    if page.children and not page.lists_children:
        below = (*page.children, *page.beside)
        listed = (f"- [{child.title}]({_relative(child.address + '.md', page.address)})" for child in below)
        out += ["", lead, "", *listed, ""]
    return "\n".join(out)


def _relative(target: str, address: str) -> str:
    return os.path.relpath(target, PurePosixPath(address).parent.as_posix()).replace(os.sep, "/")


def _named(code: str, page: Page, where: Mapping[tuple[str, str], tuple[str, str]]) -> str:
    """Code that names another document of the site, from the root or from this one, as a link to its page."""
    folder = PurePosixPath(page.document.source).parent
    for source in (code.strip("`"), (folder / code.strip("`")).as_posix()):
        if source.endswith(".md") and source != page.document.source and (source, "") in where:
            address, _ = where[source, ""]
            return f"[{code}]({_relative(f'{address}.md', page.address)})"
    return code


def _linked(line: str, page: Page, where: Mapping[tuple[str, str], tuple[str, str]], pictures: set[str]) -> str:
    folder = PurePosixPath(page.document.source).parent

    def target(link: str) -> str | None:
        """Address of a link from this page; None = nothing on the site has it."""
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            return link
        path, _, anchor = link.partition("#")
        source = os.path.normpath((folder / path).as_posix()).replace(os.sep, "/") if path else page.document.source
        source = source.replace(".zh.md", ".md")
        if source.endswith((".png", ".svg")):
            if not (ROOT / source).is_file():
                return link  # made with the page
            pictures.add(source)
            return _relative(f"pictures/{PurePosixPath(source).name}", page.address)
        if source.startswith(OBJECTS) and (source, "") in where:
            return _relative(f"{where[source, ''][0]}.md", page.address) + (f"#{anchor}" if anchor else "")
        if (source, anchor) not in where:
            return None
        address, below = where[source, anchor]
        return _relative(f"{address}.md", page.address) + (f"#{below}" if below else "")

    def replace_link(match: re.Match[str]) -> str:
        link = target(match[3])
        return match[2] if link is None else f"{match[1]}[{match[2]}]({link})"

    def replace_source(match: re.Match[str]) -> str:
        return f'{match[1]}="{target(match[2]) or match[2]}"'

    # Links may enclose code, but code holds no links.
    code: list[str] = []

    def hide(match: re.Match[str]) -> str:
        code.append(match[0])
        return f"\0{len(code) - 1}\0"

    def replace(match: re.Match[str]) -> str:
        return replace_link(match) if match[4] is None else _named(code[int(match[4])], page, where)

    text = re.sub(r"`+[^`]*`+", hide, line)
    text = LINK.sub(replace_link, text) if HEADING.match(line) else LINK_OR_CODE.sub(replace, text)
    text = re.sub(r"\0(\d+)\0", lambda match: code[int(match[1])], text)
    return SOURCE.sub(replace_source, text)


def navigation(pages: Sequence[Page]) -> list[dict[str, object]]:
    """Navigation of the site generator: titles with files, and lists that begin with the page above."""
    entries: list[dict[str, object]] = []
    for page in pages:
        entry: dict[str, object] = {page.title: f"{page.address}.md"}
        entries.append({page.title: [entry, *navigation(page.children)]} if page.children else entry)
    return entries
