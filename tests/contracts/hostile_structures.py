"""Structured files that somebody else has written: many rows, cells, units or runs, or elements within each other.

Each family is a function of a size in bytes, which gives the markup that the parser of its name puts in a frame.
"""

from collections.abc import Callable, Mapping

from tests.contracts.hostile_parsers import document, file, memory_file, pairs, term_base_file
from tests.documents import made

Structure = Callable[[int], str]

NAMES = {
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "p": "http://schemas.openxmlformats.org/presentationml/2006/main",
    "office": "urn:oasis:names:tc:opendocument:xmlns:office:1.0",
    "text": "urn:oasis:names:tc:opendocument:xmlns:text:1.0",
    "table": "urn:oasis:names:tc:opendocument:xmlns:table:1.0",
}


def many(element: str, before: str = "", after: str = "") -> Structure:
    """Elements one after another; "§" is the number of each."""
    numbered = "§" in element

    def made_of(size: int) -> str:
        number = max(1, (size - len(before) - len(after)) // (len(element) + 3 * numbered))
        each = "".join(element.replace("§", str(index)) for index in range(number)) if numbered else element * number
        return before + each + after

    return made_of


def nested(opening: str, middle: str, closing: str, deepest: int = 1 << 30) -> Structure:
    """Elements within each other; more than the deepest begin anew."""

    def made_of(size: int) -> str:
        depth = max(1, min(deepest, size // (len(opening) + len(closing))))
        one = opening * depth + middle + closing * depth
        return one * max(1, size // len(one))

    return made_of


def both(*structures: Structure) -> Structure:
    """One after another, each with its share of the size."""
    return lambda size: "".join(structure(size // len(structures)) for structure in structures)


def around(before: str, structure: Structure, after: str) -> Structure:
    return lambda size: before + structure(size - len(before) - len(after)) + after


def named(element: str, prefixes: str) -> str:
    return f"<{element} " + " ".join(f'xmlns:{each}="{NAMES[each]}"' for each in prefixes.split()) + ">"


def framed(frame: str) -> Callable[[str], str]:
    """Put a text in the place of {}."""
    before, _, after = frame.partition("{}")
    return lambda text: before + text + after


def zipped(member: str, frame: str) -> Callable[[str], bytes]:
    return lambda text: made.archive({member: framed(frame)(text).encode()})


def book(text: str) -> bytes:
    """Book of a chapter for each part of a text that form feeds divide."""
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><body>{}</body></html>'
    chapters = {f"c{index}.xhtml": page.format(part).encode() for index, part in enumerate(text.split("\f"))}
    return made.archive({"META-INF/container.xml": b"<container/>"} | chapters)


def headers(text: str) -> bytes:
    """Word document of a header for each part of a text."""
    opening, closing = named("w:hdr", "w"), "</w:hdr>"
    parts = {f"word/header{i}.xml": (opening + each + closing).encode() for i, each in enumerate(text.split("\f"))}
    return made.archive({"word/document.xml": (named("w:document", "w") + "</w:document>").encode()} | parts)


def slides(text: str) -> bytes:
    opening, closing = named("p:sld", "a p"), "</p:sld>"
    parts = {f"ppt/slides/slide{i}.xml": (opening + each + closing).encode() for i, each in enumerate(text.split("\f"))}
    return made.archive(parts)


WORD = "<w:r><w:t>a </w:t></w:r>"
BOLD = "<w:r><w:rPr><w:b/></w:rPr><w:t>a </w:t></w:r>"
LINE = f"<w:p>{WORD}</w:p>"
CELL = f"<w:tc>{LINE}</w:tc>"
RUN = "<a:r><a:t>a </a:t></a:r>"
SLIDE_CELL = f"<a:tc><a:txBody><a:p>{RUN}</a:p></a:txBody></a:tc>"
TEXT_CELL = "<table:table-cell><text:p>a</text:p></table:table-cell>"
UNIT = "<unit id='§'><segment><source>a b</source></segment></unit>"
OLD_UNIT = "<trans-unit id='§'><source>a b</source></trans-unit>"
PAIR = '<tu><tuv xml:lang="de"><seg>a</seg></tuv><tuv xml:lang="en"><seg>b</seg></tuv></tu>'
SEGMENT = '<tuv xml:lang="x§"><seg>a</seg></tuv>'
TERM = '<langSet xml:lang="{}"><tig><term>a §</term></tig></langSet>'
CONCEPT = f"<termEntry>{TERM.format('de')}{TERM.format('en')}</termEntry>"

WORD_FRAME = f"{named('w:document', 'w')}<w:body>{{}}</w:body></w:document>"
TEXT_FRAME = (
    f"{named('office:document-content', 'office text table')}<office:body><office:text>{{}}</office:text></office:body>"
    "</office:document-content>"
)
XLIFF = '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="de"><file id="f">{}</file></xliff>'
OLD_XLIFF = (
    '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file source-language="de"><body>{}'
    "</body></file></xliff>"
)
CUE = "§\n00:00:01,000 --> 00:00:02,000\na b\n\n"

READERS: Mapping[str, Callable[[str], int]] = {
    "docx": document(".docx", zipped("word/document.xml", WORD_FRAME)),
    "docx headers": document(".docx", headers),
    "pptx": document(".pptx", slides),
    "odt": document(".odt", zipped("content.xml", TEXT_FRAME)),
    "epub": document(".epub", book),
    "xliff": document(".xlf", framed(XLIFF)),
    "xliff 1.2": document(".xlf", framed(OLD_XLIFF)),
    "tmx": memory_file(framed('<tmx version="1.4"><header srclang="de"/><body>{}</body></tmx>')),
    "tbx": term_base_file(framed("<martif><text><body>{}</body></text></martif>")),
    "json": document(".json"),
    "po": document(".po", framed('msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n{}')),
    "properties": document(".properties"),
    "html": document(".html"),
    "md": document(".md"),
    "srt": document(".srt"),
    "vtt": document(".vtt", framed("WEBVTT\n\n{}")),
    "csv": file("a.csv", pairs),
    "tsv": file("a.tsv", pairs),
    "jsonl": file("a.jsonl", pairs),
}

STRUCTURES: Mapping[str, Mapping[str, Structure]] = {
    "docx": {
        "paragraphs": many(LINE),
        "empty paragraphs": many("<w:p/>"),
        "runs": many(WORD, "<w:p>", "</w:p>"),
        "runs of two formats": many(WORD + BOLD, "<w:p>", "</w:p>"),
        "runs of many formats": many('<w:r><w:rPr><w:sz w:val="§"/></w:rPr><w:t>a </w:t></w:r>', "<w:p>", "</w:p>"),
        "a large format, then runs of it": around(
            "<w:p>",
            both(
                many("<w:noProof/>", "<w:r><w:rPr><w:b/>", "</w:rPr><w:t>a </w:t></w:r>"),
                many(WORD + BOLD),
            ),
            "</w:p>",
        ),
        "formats of many parts": many(f"<w:r><w:rPr>{'<w:b/>' * 50}</w:rPr><w:t>a </w:t></w:r>", "<w:p>", "</w:p>"),
        "texts in a run": many("<w:t>a </w:t><w:tab/>", "<w:p><w:r>", "</w:r></w:p>"),
        "line breaks": many("<w:t>a </w:t><w:br/>", "<w:p><w:r>", "</w:r></w:p>"),
        "links": many(f"<w:hyperlink>{WORD}</w:hyperlink>", "<w:p>", "</w:p>"),
        "bookmarks": many('<w:bookmarkStart w:id="§"/>', f"<w:p>{WORD}", f"{WORD}</w:p>"),
        "rows": many(f"<w:tr>{CELL}</w:tr>", "<w:tbl>", "</w:tbl>"),
        "cells": many(CELL, "<w:tbl><w:tr>", "</w:tr></w:tbl>"),
        "tables": many(f"<w:tbl><w:tr>{CELL}</w:tr></w:tbl>"),
        "nested tables": nested("<w:tbl><w:tr><w:tc>", LINE, "</w:tc></w:tr></w:tbl>", 60),
        "insertions": around("<w:p>", nested("<w:ins>", WORD, "</w:ins>", 30), "</w:p>"),
        "deep insertions": around("<w:p>", nested("<w:ins>", WORD, "</w:ins>", 200), "</w:p>"),
        "words in insertions": around("<w:p>" + "<w:ins>" * 30, many(WORD + BOLD), "</w:ins>" * 30 + "</w:p>"),
        "text boxes": nested("<w:p><w:r><w:t>a</w:t><w:pict>", LINE, "</w:pict></w:r></w:p>", 60),
        "words in text boxes": around("<w:p><w:r><w:t>a</w:t><w:pict>" * 60, many(LINE), "</w:pict></w:r></w:p>" * 60),
        "without an end": nested("<w:p>", "", "</w:p>"),
        "attributes": many(' b§="1"', "<w:p", f">{WORD}</w:p>"),
        "names": around("<w:p>", both(many(' xmlns:n§="§"', "<w:ins", ">"), many(WORD + BOLD)), "</w:ins></w:p>"),
        "comments": many("<!---->a", "<w:p><w:r><w:t>", "</w:t></w:r></w:p>"),
        "instructions": many("<?a?>", f"<w:p>{WORD}", f"{WORD}</w:p>"),
    },
    "docx headers": {"headers": many(f"<w:p>{WORD * 12}</w:p>\f")},
    "pptx": {
        "slides": many(f"<p:txBody><a:p>{RUN * 12}</a:p></p:txBody>\f"),
        "paragraphs": many(f"<a:p>{RUN}<a:endParaRPr/></a:p>"),
        "runs": many(RUN, "<a:p>", "<a:endParaRPr/></a:p>"),
        "runs of two formats": many(RUN + '<a:r><a:rPr b="1"/><a:t>a </a:t></a:r>', "<a:p>", "<a:endParaRPr/></a:p>"),
        "line breaks": many(f"{RUN}<a:br/>", "<a:p>", "</a:p>"),
        "fields": many("<a:fld><a:t>1</a:t></a:fld>", f"<a:p>{RUN}", f"{RUN}</a:p>"),
        "rows": many(f"<a:tr>{SLIDE_CELL}</a:tr>", "<a:tbl>", "</a:tbl>"),
        "cells": many(SLIDE_CELL, "<a:tbl><a:tr>", "</a:tr></a:tbl>"),
        "groups": nested("<p:grpSp>", f"<p:sp><p:txBody><a:p>{RUN}</a:p></p:txBody></p:sp>", "</p:grpSp>", 200),
    },
    "odt": {
        "paragraphs": many("<text:p>a b.</text:p>"),
        "spans": many("<text:span>a </text:span>b ", "<text:p>", "</text:p>"),
        "spaces": many("a<text:s/>", "<text:p>", "</text:p>"),
        "tabs": many("a<text:tab/>", "<text:p>", "</text:p>"),
        "rows": many(f"<table:table-row>{TEXT_CELL}</table:table-row>", "<table:table>", "</table:table>"),
        "cells": many(TEXT_CELL, "<table:table><table:table-row>", "</table:table-row></table:table>"),
        "nested tables": nested(
            "<table:table><table:table-cell>", "<text:p>a</text:p>", "</table:table-cell></table:table>", 80
        ),
        "lists": nested("<text:list><text:list-item>", "<text:p>a</text:p>", "</text:list-item></text:list>", 80),
        "nested spans": around("<text:p>", nested("<text:span>", "a ", "</text:span>", 30), "</text:p>"),
        "deep spans": around("<text:p>", nested("<text:span>", "a ", "</text:span>", 200), "</text:p>"),
        "words in spans": around(
            "<text:p>" + "<text:span>" * 30, many("a <text:line-break/>"), "</text:span>" * 30 + "</text:p>"
        ),
        "notes": nested(
            "<text:p>a<text:note><text:note-body>", "<text:p>a</text:p>", "</text:note-body></text:note></text:p>", 60
        ),
        "words in notes": around("<text:p>a<text:note>" * 60, many("<text:p>a</text:p>"), "</text:note></text:p>" * 60),
        "attributes": many(' b§="1"', "<text:p", ">a b</text:p>"),
        "names": around(
            "",
            both(many(' xmlns:n§="§"', "<text:list", ">"), many("<text:p>a<text:span>b</text:span></text:p>")),
            "</text:list>",
        ),
    },
    "epub": {
        "chapters": many(f"<p>{'a b ' * 80}</p>\f"),
        "paragraphs": many("<p>a <b>b</b></p>"),
        "rows": many("<tr><td>a</td></tr>", "<table>", "</table>"),
        "cells": many("<td>a</td>", "<table><tr>", "</tr></table>"),
        "nested": nested("<div>", "<p>a</p>", "</div>"),
        "nested tables": nested("<table><tr><td>", "a", "</td></tr></table>"),
        "nested spans": around("<p>", nested("<i><b>", "a ", "</b></i>", 50), "</p>"),
        "deep spans": around("<p>", nested("<i><b>", "a ", "</b></i>"), "</p>"),
        "attributes": many(' b§="1"', "<p", ">a b</p>"),
    },
    "xliff": {
        "units": many(UNIT),
        "segments": many("<segment><source>a b</source></segment>", "<unit id='u'>", "</unit>"),
        "done": many("<segment><source>a b</source><target>a</target></segment>", "<unit id='u'>", "</unit>"),
        "groups": nested("<group>", UNIT, "</group>", 200),
        "units in groups": around("<group>" * 200, many(UNIT), "</group>" * 200),
        "codes": many('a <ph id="§"/>', "<unit><segment><source>", "</source></segment></unit>"),
        "pairs of codes": many('<pc id="§">a </pc>', "<unit><segment><source>", "</source></segment></unit>"),
        "nested codes": around(
            "<unit><segment><source>", nested("<pc>", "a ", "</pc>", 30), "</source></segment></unit>"
        ),
        "deep codes": around(
            "<unit><segment><source>", nested("<pc>", "a ", "</pc>", 200), "</source></segment></unit>"
        ),
        "notes": many("<note>a</note>", "<unit>", "<segment><source>a</source></segment></unit>"),
        "segments in segments": nested("<segment><source>a", "", "</source></segment>", 100),
        "units in segments": around(
            "<segment><source>a" * 12, many("<segment><source>a</source></segment>"), "</source></segment>" * 12
        ),
    },
    "xliff 1.2": {
        "units": many(OLD_UNIT),
        "groups": nested("<group>", OLD_UNIT, "</group>", 200),
        "codes": many('a <x id="§"/>', "<trans-unit><source>", "</source></trans-unit>"),
        "nested codes": around("<trans-unit><source>", nested("<g>", "a ", "</g>", 30), "</source></trans-unit>"),
        "other translations": many(
            "<alt-trans><source>a</source></alt-trans>", "<trans-unit><source>a</source>", "</trans-unit>"
        ),
    },
    "tmx": {
        "units": many(PAIR),
        "empty units": around(PAIR, many("<tu/>"), ""),
        "segments": many(SEGMENT, f"{PAIR}<tu>", "</tu>"),
        "languages": many(f'<tu>{SEGMENT}<tuv xml:lang="en"><seg>b</seg></tuv></tu>'),
        "languages, then units": both(many(SEGMENT, "<tu>", "</tu>"), many("<tu/>")),
        "nested units": nested("<tu>", PAIR, "</tu>"),
        "a unit within others": both(many("<tu>"), many(SEGMENT), lambda size: "</tu>" * max(1, size // 4)),
        "codes": many(
            "a<ph>1</ph>", '<tu><tuv xml:lang="de"><seg>', '</seg></tuv><tuv xml:lang="en"><seg>b</seg></tuv></tu>'
        ),
        "nested codes": around(
            '<tu><tuv xml:lang="de"><seg>',
            nested("<sub>", "a", "</sub>"),
            '</seg></tuv><tuv xml:lang="en"><seg>b</seg></tuv></tu>',
        ),
        "attributes": around(PAIR, many(' b§="1"', "<tu", "/>"), ""),
    },
    "tbx": {
        "concepts": many(CONCEPT),
        "terms": around("<termEntry>", both(many(TERM.format("de")), many(TERM.format("en"))), "</termEntry>"),
        "terms of a language": many(
            "<tig><term>a §</term></tig>",
            f"<termEntry>{TERM.format('en')}<langSet xml:lang='de'>",
            "</langSet></termEntry>",
        ),
        "languages": around(CONCEPT, many(TERM.format("x§"), "<termEntry>", "</termEntry>"), ""),
        "languages, then concepts": both(many(TERM.format("x§"), "<termEntry>", "</termEntry>"), many(CONCEPT)),
        "states": many(
            '<termNote type="administrativeStatus">a</termNote>',
            f"{CONCEPT}<termEntry><langSet xml:lang='de'><tig><term>a</term>",
            "</tig></langSet></termEntry>",
        ),
        "nested concepts": nested("<termEntry>", CONCEPT, "</termEntry>"),
        "a concept within others": lambda size: (
            "<termEntry>" * (size // 70)
            + many(TERM.format("de"))(size // 2)
            + TERM.format("en")
            + "</termEntry>" * (size // 70)
        ),
        "attributes": around(CONCEPT, many(' b§="1"', "<note", "/>"), ""),
    },
    "json": {
        "keys": many('"k§": "a b", ', "{", '"z": "a"}'),
        "texts": many('"a b", ', "[", '"a"]'),
        "numbers": many("1, ", "[", '"a"]'),
        "objects": many('{"a": "b"}, ', "[", '"a"]'),
        "nested": around("[", many('{"a": ' * 150 + '"b"' + "}" * 150 + ", "), "1]"),
        "lists in lists": around("[", many("[" * 100 + '"a"' + "]" * 100 + ", "), '"a"]'),
        "long": around('"', many("\\n"), '"'),
    },
    "po": {
        "messages": many('msgid "a §"\nmsgstr ""\n\n'),
        "equal messages": many('msgid "a"\nmsgstr ""\n\n'),
        "lines": many('"a b"\n', 'msgid ""\n', 'msgstr ""\n'),
        "comments": many("# a\n", "", 'msgid "a"\nmsgstr ""\n'),
        "places": many("#: a.c:§\n", "", 'msgid "a"\nmsgstr ""\n'),
        "plurals": many('msgid "a §"\nmsgid_plural "b §"\nmsgstr[0] ""\nmsgstr[1] ""\n\n'),
        "forms": many('msgstr[§] ""\n', 'msgid "a"\nmsgid_plural "b"\n'),
        "obsolete": many('#~ msgid "a §"\n#~ msgstr "b"\n\n'),
    },
    "properties": {
        "values": many("k§=a b\n"),
        "a long value": many("a \\\n", "k="),
        "comments": many("# a\n", "", "k=a\n"),
    },
    "html": {
        "rows": many("<tr><td>a</td></tr>", "<table>", "</table>"),
        "cells": many("<td>a</td>", "<table><tr>", "</tr></table>"),
        "nested tables": nested("<table><tr><td>", "a", "</td></tr></table>"),
        "lists": nested("<ul><li>", "a", "</li></ul>"),
        "spans": around("<p>", nested("<i><b>", "a ", "</b></i>"), "</p>"),
        "attributes": many(' b§="1"', "<p", ">a b</p>"),
        "titles": many('<i title="a b"></i>'),
        "options": many("<option>a", "<select>", "</select>"),
        "definitions": many("<dt>a<dd>b", "<dl>", "</dl>"),
        "headings": many("<h1>a</h1>"),
        "frames": nested("<template>", "a", "</template>"),
    },
    "md": {
        "rows": many("| a | b |\n", "| a | b |\n|---|---|\n"),
        "cells": lambda size: f"{many('| a ')(size // 3)}|\n{many('|---')(size // 3)}|\n{many('| a ')(size // 3)}|\n",
        "rows of a cell": many("|a\n", "|a\n|-\n"),
        "empty rows": many("|\n", "|a\n|-\n"),
        "long rows": many("|a" * 1000 + "\n"),
        "nested lists": lambda size: "".join("  " * (index % 50) + "- a\n" for index in range(size // 54)),
        "quotations": lambda size: "".join("> " * (index % 50) + "a\n" for index in range(size // 52)),
        "references": many("[a§]: b\n", "", "\n[a1]\n"),
        "uses of references": both(many("[a§]: b\n"), many("[a§] ")),
        "footnotes": many("[^§]: a\n\n"),
        "emphasis": many("*a **b*** "),
        "code": many("```\na\n```\n"),
        "notes": both(many("a[^§] "), many("\n[^§]: a\n[b§]: c")),
        "nested notes": lambda size: "".join(f"{' ' * (index % 50)}[^a]: - a\n" for index in range(size // 34)),
        "tasks": many("- [ ] a\n"),
        "nested tasks": lambda size: "".join("  " * (index % 50) + "- [ ] a\n" for index in range(size // 58)),
        "callouts": many("> [!NOTE]\n> a\n\n"),
        "fences of colons": many(":::a\na\n"),
        "lines of math": many("$$\na\n"),
        "open math": many("a\n$$ a\n"),
        "open math in lists": many("- $$ a\n"),
        "math": many("$a$ b "),
        "signs of math": many(" $a\\$"),
        "keys": many("<kbd>a</kbd> b "),
        "open keys": many("<kbd>a <code>"),
        "comments": many("a <!-- b --> "),
        "open comments": many("a <!-- "),
        "entities": many("&amp; \\* "),
        "blocks of HTML": many("<div>a</div>\n\n"),
        "lines of HTML": many("<div>a\n"),
        "HTML in quotations": many("> <div>a\n> b\n\n"),
    },
    "srt": {
        "cues": many(CUE),
        "lines": many("a b\n", "1\n00:00:01,000 --> 00:00:02,000\n"),
        "tags": many("<i>a</i> ", "1\n00:00:01,000 --> 00:00:02,000\n"),
    },
    "vtt": {
        "cues": many(CUE.replace(",", ".")),
        "notes": many("NOTE a\n\n"),
        "lines": many("a b\n", "00:01.000 --> 00:02.000\n"),
    },
    "csv": {
        "rows": many("a §,b\n"),
        "cells": lambda size: 2 * (many("a§,")(size // 2) + "b\n"),
        "quoted rows": many('"a, §","b"\n'),
        "quoted cells": lambda size: 2 * (many('"a, §",')(size // 2) + '"b"\n'),
        "rows of several lines": many('"a\n§","b"\n'),
        "empty cells": lambda size: 2 * ("," * (size // 2) + "\n"),
        "open cells": many('"a,b\n', "a,b\n"),
        "uneven rows": lambda size: "".join("a," * (index % 100) + "b\n" for index in range(size // 102)),
    },
    "tsv": {
        "rows": many("a §\tb\n"),
        "cells": lambda size: 2 * (many("a§\t")(size // 2) + "b\n"),
        "quoted rows": many('"a\t§"\t"b"\n'),
        "open cells": many('"a\tb\n', "a\tb\n"),
        "empty lines": many("\n", "a\tb\n", "a\tb\n"),
    },
    "jsonl": {
        "rows": many('{"source": "a §", "target": "b"}\n'),
        "keys": many('"k§": "a", ', '{"source": "a", ', '"target": "b"}\n'),
        "other keys": many('{"source": "a", "target": "b", "k§": "c"}\n'),
        "nested": many(f'{{"source": "a", "target": "b", "c": {"[" * 100}{"]" * 100}}}\n'),
        "lists": many('"a", ', '{"source": "a", "target": "b", "c": [', '"a"]}\n'),
    },
}
