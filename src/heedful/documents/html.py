"""HTML as passages: blocks of text with their inline tags, and attributes that people read; the rest stays as it is."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from html import unescape
from html.entities import html5
from typing import Final, NamedTuple, final

from heedful.documents.html_tokens import Attribute, Token, html_tokens
from heedful.documents.inline import Passage, PassageBuilder
from heedful.documents.lines import goes_on
from heedful.documents.markup_rules import HTML, MarkupRules
from heedful.text.tagged_text import TaggedText

_READ_ATTRIBUTES: Final = frozenset(("alt", "title", "placeholder", "aria-label", "aria-description"))
_DESCRIPTIONS: Final = frozenset(("description", "og:title", "og:description", "twitter:title", "twitter:description"))
_BUTTONS: Final = frozenset(("submit", "button", "reset"))
_SPACE: Final = re.compile(r"[\t\n\f\r ]+")
_NEXT_CHARACTER: Final = re.compile(r"[\t\n\f\r ]*+([^\t\n\f\r ])")
_SPACES: Final = "\t\n\f\r "
_REFERENCE: Final = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});?")
_CLOSED_REFERENCE: Final = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});")
_ENTITY: Final = re.compile(r"&([^\W\d][\w.-]*+;)")


class Slice(NamedTuple):
    """Characters of the document from `start` to `end`."""

    start: int
    end: int


class _Part(NamedTuple):
    """Translatable part of the document: a block, or the value of an attribute."""

    passage: Passage[Slice]
    span: Slice
    is_attribute: bool = False


@final
class HtmlMarkup:
    """HTML, whole or a fragment, taken apart into passages and written again with translations."""

    def __init__(self, document: str, rules: MarkupRules = HTML) -> None:
        """Read a document.

        Args:
            document: HTML or XML, however broken.
            rules: which elements are blocks, and which stay.
        """
        self._document: Final = document
        self._rules: Final = rules
        self._parts: Final[list[_Part]] = []
        self._block: PassageBuilder[Slice] = PassageBuilder()
        self._first = self._last = -1
        self._ends_in_space = True
        self._read()
        self._attributes: Final = sorted(
            (index for index, one in enumerate(self._parts) if one.is_attribute),
            key=lambda index: self._parts[index].span,
        )
        self._attribute_starts: Final = [self._parts[index].span.start for index in self._attributes]

    @property
    def passages(self) -> list[TaggedText]:
        """Texts to translate, with their inline tags.

        Scripts, styles, code, preformatted text, and elements with ``translate="no"`` or the class ``notranslate`` are
        left out, or kept within the sentence where they stand in one. Attributes that people read, such as ``alt``, are
        passages of their own.

        Example:
            >>> HtmlMarkup("<p>Fish &amp; <b>chips</b></p>").passages
            [TaggedText(text='Fish & chips', tags=(Tag(start=7, end=12, parent=-1, is_kept=False, is_break=False),))]
        """
        return [one.passage.source for one in self._parts]

    def write(self, outputs: Sequence[TaggedText]) -> str:
        """Write the document with translated passages.

        Args:
            outputs: translation of each passage, with the same tags.

        Returns:
            HTML in which all that was not translated is as it was, to the character, and in which ``&``, ``<`` and
            ``>`` of the translations are escaped.
        """
        written: list[str] = []
        offset = 0
        for part, output in zip(self._parts, outputs, strict=True):
            if part.is_attribute:
                continue
            written.append(self._stays(Slice(offset, part.span.start), outputs))
            offset = part.span.end
            if output == part.passage.source:
                written.append(self._stays(part.span, outputs))
                continue
            for piece in part.passage.woven(output):
                written.append(_escaped(piece) if isinstance(piece, str) else self._stays(*piece, outputs))
        written.append(self._stays(Slice(offset, len(self._document)), outputs))
        return "".join(written)

    def _stays(self, part: Slice, outputs: Sequence[TaggedText]) -> str:
        """Part of the document in which only attributes are translated."""
        first = bisect_left(self._attribute_starts, part.start)
        last = bisect_left(self._attribute_starts, part.end)
        if first == last:
            return self._document[part.start : part.end]
        written: list[str] = []
        offset = part.start
        for index in self._attributes[first:last]:
            attribute, output = self._parts[index], outputs[index]
            if output.text != attribute.passage.source.text:
                written += [self._document[offset : attribute.span.start], _quoted(output.text)]
                offset = attribute.span.end
        written.append(self._document[offset : part.end])
        return "".join(written)

    def _read(self) -> None:
        tokens = html_tokens(self._document, self._rules.is_xml)
        document = self._document
        excluded: _Excluded | None = None
        for token in tokens:
            if excluded is not None:
                if not excluded.ends_before(token):
                    excluded.add(token, document)
                    if excluded.is_over:
                        self._add_excluded(excluded)
                        excluded = None
                    continue
                self._add_excluded(excluded)
                excluded = None
            part = Slice(token.start, token.end)
            if token.kind == "text":
                self._add_texts(part)
            elif token.kind == "start":
                is_marked = self._is_marked(token)
                if not is_marked:
                    self._add_attributes(token)
                if is_marked or token.name in self._rules.kept or token.name in self._rules.opaque:
                    excluded = _Excluded(token, self._rules)
                    if excluded.is_over:
                        self._add_excluded(excluded)
                        excluded = None
                elif token.name in self._rules.blocks:
                    self._flush()
                elif token.name == "br" and self._rules.has_html:
                    self._break(part)
                elif token.is_empty:
                    self._add_point(part)
                else:
                    self._extend(part).begin(token.name, part)
            elif token.kind == "end" and token.name in self._rules.blocks:
                self._flush()
            elif token.kind == "end":
                self._extend(part).end(token.name, part)
                self._ends_in_space = self._ends_in_space and self._block.has_text  # an icon is seen
            else:
                self._extend(part).point(part)
        if excluded is not None:
            self._add_excluded(excluded)
        self._flush()

    def _extend(self, part: Slice) -> PassageBuilder[Slice]:
        """The block, with one more part of the document."""
        self._first = part.start if self._first < 0 else self._first
        self._last = part.end
        return self._block

    def _add_texts(self, part: Slice) -> None:
        """Add text; references that only the document itself explains are points, and stay."""
        offset = part.start
        if self._rules.is_xml:
            for match in _ENTITY.finditer(self._document, part.start, part.end):
                if match[1] not in html5:
                    self._add_text(_plain(self._document[offset : match.start()]), Slice(offset, match.start()))
                    self._add_point(Slice(match.start(), match.end()))
                    offset = match.end()
        self._add_text(_plain(self._document[offset : part.end]), Slice(offset, part.end))

    def _add_point(self, part: Slice) -> None:
        """Add something that is seen, so that spaces on both sides of it are two."""
        self._extend(part).point(part)
        self._ends_in_space = False

    def _add_text(self, text: str, part: Slice) -> None:
        """Add text with white space as in HTML."""
        block = self._extend(part)
        if spaced := self._spaced(text):
            block.add(spaced)
            self._ends_in_space = spaced.endswith(" ")

    def _spaced(self, text: str) -> str:
        spaced = _SPACE.sub(" ", text)
        return spaced[1:] if self._ends_in_space and spaced.startswith(" ") else spaced

    def _break(self, part: Slice) -> None:
        """Add a line break, which ends the passage unless its sentence goes on in the next line."""
        following = _NEXT_CHARACTER.match(self._document, part.end)
        is_within = following is not None and goes_on(self._block.ending, following[1])
        if not is_within:
            self._flush()
            return
        self._extend(part).point(part, is_break=True)
        self._add_text(" ", part)

    def _flush(self) -> None:
        block, first, last = self._block, self._first, self._last
        if first < 0:
            return
        self._block, self._first, self._last, self._ends_in_space = PassageBuilder(), -1, -1, True
        if not block.has_text:
            return
        passage = block.passage()
        if passage.needs_translation:
            document = self._document
            while document[first] in _SPACES:
                first += 1
            while document[last - 1] in _SPACES:
                last -= 1
            self._parts.append(_Part(passage, Slice(first, last)))

    def _add_excluded(self, excluded: "_Excluded") -> None:
        part = Slice(excluded.start, excluded.end)
        if excluded.is_block:
            self._flush()
        elif excluded.is_opaque:
            self._add_point(part)
        else:
            text = self._spaced("".join(excluded.texts))
            self._extend(part).keep(text, part)
            self._ends_in_space = text.endswith(" ") if text else self._ends_in_space

    def _is_marked(self, token: Token) -> bool:
        """Whether the author says that an element is not to be translated."""
        return any(
            (one.name == "translate" and self._value(one).lower() == "no")
            or (one.name == "class" and "notranslate" in self._value(one).split())
            for one in token.attributes
        )

    def _add_attributes(self, token: Token) -> None:
        if not (token.attributes and self._rules.has_html):
            return
        values = {one.name: one for one in reversed(token.attributes)}
        names = [name for name in values if name in _READ_ATTRIBUTES]
        if token.name == "meta" and "content" in values:
            described = {self._value(values[name]).lower() for name in ("name", "property") if name in values}
            names += ["content"] * bool(described & _DESCRIPTIONS)
        if token.name == "input" and {"type", "value"} <= values.keys():
            names += ["value"] * (self._value(values["type"]).lower() in _BUTTONS)
        if token.name in ("option", "optgroup", "track") and "label" in values:
            names.append("label")
        for name in names:
            one = values[name]
            text = " ".join(self._value(one).split())
            if text:
                self._parts.append(_Part(Passage(TaggedText(text), []), Slice(one.start, one.end), is_attribute=True))

    def _value(self, attribute: Attribute) -> str:
        value = self._document[attribute.start : attribute.end]
        if value[:1] in ('"', "'"):
            value = value[1:-1]
        return _CLOSED_REFERENCE.sub(lambda match: unescape(match[0]), value) if "&" in value else value


@final
class _Excluded:
    """Element that is not translated, from its start tag to its end."""

    def __init__(self, token: Token, rules: MarkupRules) -> None:
        self._rules: Final = rules
        self.start: Final = token.start
        self.end = token.end
        self.texts: Final[list[str]] = []
        self.is_block: Final = token.name in rules.blocks
        self.is_opaque: Final = token.name in rules.opaque or token.is_empty
        self.is_over = token.is_empty
        self._open: Final = [token.name]
        self._counts: Final = Counter(self._open)

    def ends_before(self, token: Token) -> bool:
        """Whether the element ends without an end tag of its own before a token."""
        if len(self._open) != 1 or self._open[0] not in self._rules.optional_ends:
            return False
        name = self._open[0]
        if token.kind == "start":
            is_sibling = token.name == name or {token.name, name} <= _SIBLINGS
            return is_sibling or (name == "p" and token.name in self._rules.blocks)
        return token.kind == "end" and token.name != name and token.name in self._rules.blocks

    def add(self, token: Token, document: str) -> None:
        """Add a token of the content, or the end tag."""
        self.end = token.end
        if token.kind == "text":
            self.texts.append(_plain(document[token.start : token.end]))
        elif token.kind == "start" and not token.is_empty:
            if token.name in self._rules.optional_ends and self._open[-1] == token.name:
                self._counts[self._open.pop()] -= 1
            self._open.append(token.name)
            self._counts[token.name] += 1
        elif token.kind == "end" and self._counts[token.name]:
            while True:
                name = self._open.pop()
                self._counts[name] -= 1
                if name == token.name:
                    break
            self.is_over = not self._open


_SIBLINGS: Final = frozenset(("td", "th"))


def _plain(text: str) -> str:
    """Text without character references."""
    return _REFERENCE.sub(lambda match: unescape(match[0]), text) if "&" in text else text


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace('"', "&quot;") + '"'
