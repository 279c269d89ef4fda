"""Inline marks of Markdown: emphasis, links and HTML are tags; code, math, marks of notes and [1] stay as they are."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Final, NamedTuple, final

from heedful.documents.inline import Passage, PassageBuilder
from heedful.documents.markup_rules import HTML
from heedful.text.tagged_text import TaggedText

_MARK: Final = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<math>(?<![\w$])(?:\$\$(?:[^$\\]|\\.)++\$\$|\$(?!\s)(?:[^$\\]|\\.)++(?<!\s)\$)(?![\w$]))"
    r"|(?P<code>`++)"
    r"|(?P<note>\[\^[^\[\]\s]++\])"
    r"|(?P<number>\[\d{1,4}\](?!\())"
    r"|(?P<link>!?\[)"
    r"|(?P<target>\]\((?:[^()\\\n]|\\.|\([^()\\\n]*+\))*+\)|\]\[[^\[\]\n]*+\])"
    r"|(?P<address><[A-Za-z][A-Za-z0-9+.-]*+:[^<>\s]*+>|<[^<>@\s]++@[^<>@\s]++>)"
    r"|(?P<comment><!--)"
    r"|(?P<tag></?(?P<name>[A-Za-z][A-Za-z0-9-]*+)[^<>]*+>)"
    r"|(?P<emphasis>\*++|_++|~~)"
)
_ANY_MARK: Final = re.compile(r"[\\`*\[\]<>~|_&$]")
"""Characters without which a text has no marks."""
_PRICE: Final = re.compile(r"\$\d[\d.,]*+[^\w\\]*+[^\W\d_]{2}")
"""Beginning of a price with a word behind it, which is no math."""
_FIRST: Final = frozenset("0123456789-+#=")
_SPECIAL: Final = re.compile(
    r"[\\`*\[\]<>~|]|(?<![^\W_])_|_(?![^\W_])|&(?=(?:#[0-9]|#[xX][0-9a-fA-F]|[A-Za-z])[A-Za-z0-9]*+;)"
)
"""Characters that are marks."""
_WRITTEN: Final = re.compile(rf"(?P<special>{_SPECIAL.pattern})|_|[^\w ]")
"""Characters that have another spelling in some texts."""
_NUMBER: Final = re.compile(r"\d{1,9}")
_TAG: Final = re.compile(r"<[^<>]*+>")
_NO_SPELLINGS: Final[Mapping[str, str]] = {}


class MarkedText(NamedTuple):
    """Passage of a text with marks, and how its characters are written."""

    passage: Passage[str]
    spellings: Mapping[str, str]
    """Escapes and entities of the text, by the characters that they stand for."""

    def written(self, output: TaggedText) -> str:
        """Write a translation with the same tags, so that none of its characters is a mark."""
        if not self.passage.marks:
            return _as_paragraph(self._escaped(output.text))
        pieces = self.passage.woven(output)
        text = "".join(self._escaped(piece) if isinstance(piece, str) else piece[0] for piece in pieces)
        return _as_paragraph(text)

    def _escaped(self, text: str) -> str:
        if not self.spellings:
            return _SPECIAL.sub(r"\\\g<0>", text) if _ANY_MARK.search(text) else text

        def spelled(match: re.Match[str]) -> str:
            character = match[0]
            return self.spellings.get(character) or ("\\" + character if match["special"] else character)

        return _WRITTEN.sub(spelled, text)


def marked_text(text: str) -> MarkedText:
    """Read a text with marks.

    Args:
        text: text of a block, in one line.

    Returns:
        The passage without its marks.
    """
    if _ANY_MARK.search(text) is None:
        return MarkedText(Passage(TaggedText(text.strip()), []), _NO_SPELLINGS)
    return _Reader(text).read()


@final
class _Reader:
    """Reading of one text from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._builder: Final[PassageBuilder[str]] = PassageBuilder()
        self._spellings: Final[dict[str, str]] = {}
        self._codes: Final = _code_ends(text)
        self._emphasis: Final[list[str]] = []
        self._num_links = 0
        self._last_target: Final = max(text.rfind("]("), text.rfind("]["))
        self._last_comment_end: Final = text.rfind("-->")
        self._unclosed: Final[set[str]] = set()
        """Names of elements that do not end in the rest of the text."""

    def read(self) -> MarkedText:
        offset = 0
        while (match := _MARK.search(self._text, offset)) is not None:
            self._builder.add(self._text[offset : match.start()])
            offset = self._element(match) or self._edge(match)
        self._builder.add(self._text[offset:])
        return MarkedText(self._builder.passage(), self._spellings)

    def _element(self, match: re.Match[str]) -> int:
        """Add what a mark begins as a whole; the place behind it, or 0 if the mark is none of a whole element."""
        text, builder, mark, start = self._text, self._builder, match[0], match.start()
        end = match.end()
        if match["escape"]:
            self._add_spelled(mark[1], mark)
        elif match["entity"] and (character := unescape(mark)) != mark:
            self._add_spelled(character, mark)
        elif match["math"] and not _PRICE.match(mark):
            builder.keep(mark.strip("$"), mark)
        elif match["code"] and (code_end := self._codes.get(start)):
            end = code_end
            builder.keep(text[match.end() : end - len(mark)].strip(), text[start:end])
        elif match["note"]:
            builder.point(mark)
        elif match["address"] or match["number"]:
            builder.keep(mark[1:-1], mark)
        elif match["comment"] and start < self._last_comment_end:
            # A comment may be as short as "<!-->".
            end = text.find("-->", start + 2) + 3
            builder.point(text[start:end])
        elif match["tag"] and (closing := self._closing(match)):
            end = closing.end()
            builder.keep(_TAG.sub("", text[match.end() : closing.start()]).strip(), text[start:end])
        else:
            return 0
        return end

    def _edge(self, match: re.Match[str]) -> int:
        """Begin or end an element, or add the mark as text; the place behind it."""
        builder, mark = self._builder, match[0]
        if match["math"]:
            builder.add("$")
            return match.start() + 1
        if match["link"] and match.start() < self._last_target:
            builder.begin("link", mark)
            self._num_links += 1
        elif match["target"] and self._num_links:
            builder.end("link", mark)
            self._num_links -= 1
        elif match["tag"]:
            (builder.end if mark.startswith("</") else builder.begin)(f"<{match['name']}", mark)
        elif match["emphasis"]:
            self._emphasise(match)
        else:
            builder.add(mark)
        return match.end()

    def _add_spelled(self, character: str, spelling: str) -> None:
        self._builder.add(character)
        if _WRITTEN.fullmatch(character):
            self._spellings.setdefault(character, spelling)

    def _closing(self, match: re.Match[str]) -> re.Match[str] | None:
        """End tag of an element whose text stays."""
        name = match["name"].lower()
        if name not in HTML.kept or match[0].startswith("</") or match[0].endswith("/>") or name in self._unclosed:
            return None
        closing = re.compile(rf"</{name}[\t\n ]*+>", re.IGNORECASE).search(self._text, match.end())
        if closing is None:
            self._unclosed.add(name)
        return closing

    def _emphasise(self, match: re.Match[str]) -> None:
        builder, mark, emphasis = self._builder, match[0], self._emphasis
        before, after = self._text[match.start() - 1 : match.start()], self._text[match.end() : match.end() + 1]
        is_word = mark[0] == "_" and before.isalnum() and after.isalnum()
        if emphasis and emphasis[-1] == mark and not before.isspace() and not is_word:
            builder.end(emphasis.pop(), mark)
        elif after.strip() and not is_word:
            emphasis.append(mark)
            builder.begin(mark, mark)
        else:
            builder.add(mark)


def _code_ends(text: str) -> dict[int, int]:
    """End of the code that begins at each run of backticks: behind the next run of the same length."""
    ends: dict[int, int] = {}
    following: dict[int, int] = {}
    for run in reversed([*re.finditer(r"`++", text)]):
        size = len(run[0])
        if size in following:
            ends[run.start()] = following[size]
        following[size] = run.end()
    return ends


def _as_paragraph(text: str) -> str:
    """Text that begins no heading, list or quotation."""
    if text[:1] not in _FIRST:
        return text
    number = _NUMBER.match(text)
    if number and text[number.end() : number.end() + 1] in (".", ")"):
        return f"{text[: number.end()]}\\{text[number.end() :]}"
    return "\\" + text if text[:1] in ("-", "+", "#", "=") else text
