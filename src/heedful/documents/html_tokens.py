"""HTML tokens: tags, text and comments as the HTML standard's tokenizer splits them, with their places in the document.

The tokens are slices that together are the document, so that what is not translated stays to the character. Foreign
content, SVG and MathML, changes what follows a tag such as ``<style>``; it is followed as in tree construction.

Source: HTML Living Standard, 13.2.5 Tokenization and 13.2.6.5 Parsing tokens in foreign content. Cost: linear in the
length of the document, whatever is in it: every expression is possessive, and no character is searched for twice.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple, final

TokenKind = Literal["text", "raw", "start", "end", "other"]
"""Characters with references, characters without them (scripts, CDATA), tags, and comments or declarations."""

_SPACE: Final = r"\t\n\f\r "
_NAME_END: Final = re.compile(rf"[{_SPACE}/>]")
_ATTRIBUTE: Final = re.compile(
    rf"[{_SPACE}/]*+(?P<name>[^{_SPACE}/>][^{_SPACE}/>=]*+)"
    rf"(?:[{_SPACE}]*+=[{_SPACE}]*+"
    rf"(?P<value>\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^{_SPACE}>\"'][^{_SPACE}>]*+|(?=>)))?+"
)
_TAG_END: Final = re.compile(rf"[{_SPACE}/]*+>")
_COMMENT_END: Final = re.compile(r"--!?>")
_SHORT_COMMENT: Final = re.compile(r"-?>")
_DECLARATION_PARTS: Final = re.compile(r"<!--|<\?|[\"'\[\]>]")
_DECLARATION_ENDS: Final = {"<!--": "-->", "<?": "?>", '"': '"', "'": "'"}
_SCRIPT_PARTS: Final = re.compile(rf"<!--|-->|<(?P<close>/?)script(?=[{_SPACE}/>])", re.IGNORECASE)
VOID: Final = frozenset(
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr".split()
)
"""Elements without content or end tag."""
_RAW: Final = frozenset("script style xmp iframe noembed noframes noscript".split())
_ESCAPABLE: Final = frozenset(("title", "textarea"))
_RAW_ENDS: Final = {
    name: re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE) for name in (_RAW | _ESCAPABLE) - {"script"}
}
_HTML_WITHIN: Final = {
    "svg": frozenset(("foreignobject", "desc", "title")),
    "math": frozenset(("mi", "mo", "mn", "ms", "mtext")),
}
"""Foreign elements with HTML inside, by namespace; `annotation-xml` by its encoding too."""
_ENCODINGS: Final = (["text/html"], ["application/xhtml+xml"])
_BREAKING_OUT: Final = frozenset(
    "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta "
    "nobr ol p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
"""HTML elements that end foreign content."""


class Attribute(NamedTuple):
    """Attribute of a tag."""

    name: str
    """Name in lower case."""
    start: int
    """Index in the document of the first character of the value, its quote included."""
    end: int
    """Index after the last one; equal to `start` where there is no value."""


class Token(NamedTuple):
    """Slice of a document."""

    kind: TokenKind
    start: int
    end: int
    name: str = ""
    """Name of a tag in lower case."""
    attributes: tuple[Attribute, ...] = ()
    is_empty: bool = False
    """Whether a start tag has no end tag: of a void element, or closed by its slash in foreign content."""


def html_tokens(document: str, is_xml: bool = False) -> Iterator[Token]:
    """Split HTML into tokens.

    Args:
        document: HTML, whole or a fragment, however broken.
        is_xml: whether it is XML: names have case, and nothing but CDATA is raw.

    Yields:
        Tokens whose slices are the document. A tag that the document's end cuts off is of kind "other".

    Example:
        >>> [token.kind for token in html_tokens("<p title='3 < 4'>a < b</p>")]
        ['start', 'text', 'end']
    """
    return _Tokenizer(document, is_xml).tokens()


@final
class _Tokenizer:
    def __init__(self, document: str, is_xml: bool) -> None:
        self._document: Final = document
        self._is_xml: Final = is_xml
        self._foreign: Final = _ForeignContent()

    def tokens(self) -> Iterator[Token]:
        document, size = self._document, len(self._document)
        offset = text_start = 0
        while (offset := document.find("<", offset)) >= 0:
            token = self._markup(offset)
            if token is None:  # a character of the text
                offset += 1
                continue
            if text_start < offset:
                yield Token("text", text_start, offset)
            yield token
            offset = text_start = token.end
            if self._is_xml:
                continue
            if token.kind == "start" and self._foreign.enter(token, document):
                for content in self._content(token):
                    yield content
                    offset = text_start = content.end
            elif token.kind == "end":
                self._foreign.leave(token.name)
        if text_start < size:
            yield Token("text", text_start, size)

    def _markup(self, offset: int) -> Token | None:
        """Tag, comment or declaration that begins at a place; None if a less-than sign stands there."""
        document = self._document
        following = document[offset + 1 : offset + 2]
        if self._begins_name(following):
            return self._tag("start", offset, offset + 1)
        if following == "/":
            after = document[offset + 2 : offset + 3]
            if self._begins_name(after):
                return self._tag("end", offset, offset + 2)
            return self._until(">", offset, offset + 2) if after else None
        if following == "?":
            return self._until(">", offset, offset + 2)
        if following != "!":
            return None
        if document.startswith("--", offset + 2):
            end = _SHORT_COMMENT.match(document, offset + 4) or _COMMENT_END.search(document, offset + 4)
            return Token("other", offset, end.end() if end else len(document))
        if (self._is_xml or self._foreign.is_inside) and document.startswith("[CDATA[", offset + 2):
            end = document.find("]]>", offset + 9)
            return Token("raw", offset, end + 3 if end >= 0 else len(document))
        if self._is_xml and document.startswith("DOCTYPE", offset + 2):
            return Token("other", offset, self._declaration_end(offset + 2))
        return self._until(">", offset, offset + 2)

    def _declaration_end(self, offset: int) -> int:
        """End of a declaration of XML, which may declare more between brackets."""
        document = self._document
        is_within = False
        while (part := _DECLARATION_PARTS.search(document, offset)) is not None:
            offset = part.end()
            if part[0] in "[]":
                is_within = part[0] == "["
            elif part[0] == ">":
                if not is_within:
                    return offset
            else:
                ending = _DECLARATION_ENDS[part[0]]
                end = document.find(ending, offset)
                if end < 0:
                    break
                offset = end + len(ending)
        return len(document)

    def _begins_name(self, character: str) -> bool:
        if self._is_xml:
            return character.isalpha() or character == "_"
        return character.isalpha() and character.isascii()

    def _until(self, mark: str, start: int, offset: int) -> Token:
        end = self._document.find(mark, offset)
        return Token("other", start, end + 1 if end >= 0 else len(self._document))

    def _tag(self, kind: Literal["start", "end"], start: int, offset: int) -> Token:
        document = self._document
        end_of_name = _NAME_END.search(document, offset)
        name_end = end_of_name.start() if end_of_name else len(document)
        name, offset = document[offset:name_end], name_end
        name = name if self._is_xml else name.lower()
        attributes: list[Attribute] = []
        while (end := _TAG_END.match(document, offset)) is None:
            attribute = _ATTRIBUTE.match(document, offset)
            if attribute is None:  # the document ends within the tag
                return Token("other", start, len(document))
            offset = attribute.end()
            value = attribute.span("value") if attribute["value"] else (offset, offset)
            if document[value[0] : value[0] + 1] in ('"', "'") and value[1] - value[0] < 2:
                return Token("other", start, len(document))
            attributes.append(Attribute(attribute["name"].lower(), *value))
        is_closed = document[end.end() - 2] == "/"
        is_empty = is_closed if self._is_xml else name in VOID or (is_closed and self._foreign.holds(name))
        return Token(kind, start, end.end(), name, tuple(attributes), is_empty)

    def _content(self, tag: Token) -> Iterator[Token]:
        """Content of an element that holds no tags."""
        document, size = self._document, len(self._document)
        if tag.name == "plaintext":
            end = size
        elif tag.name == "script":
            end = self._script_end(tag.end)
        elif ending := _RAW_ENDS.get(tag.name):
            match = ending.search(document, tag.end)
            end = match.start() if match else size
        else:
            return
        if tag.end < end:
            yield Token("text" if tag.name in _ESCAPABLE else "raw", tag.end, end)

    def _script_end(self, start: int) -> int:
        """End of a script: its end tag, except between ``<!-- <script`` and ``</script>``."""
        is_comment = is_nested = False
        for part in _SCRIPT_PARTS.finditer(self._document, start):
            if part[0] == "<!--":
                # In "<!-->" and "<!--->" the comment ends with its own dashes.
                is_comment = not _SHORT_COMMENT.match(self._document, part.end())
            elif part[0] == "-->":
                is_comment = is_nested = False
            elif not part["close"]:
                is_nested = is_comment
            elif is_nested:
                is_nested = False
            else:
                return part.start()
        return len(self._document)


@final
class _ForeignContent:
    """Open elements from the outermost SVG or MathML element inwards."""

    def __init__(self) -> None:
        self._open: Final[list[tuple[str, str, bool]]] = []  # name, foreign namespace, has it HTML inside
        self._counts: Final[Counter[str]] = Counter()

    @property
    def is_inside(self) -> bool:
        """Whether text stands directly in a foreign element."""
        return bool(self._open) and bool(self._open[-1][1])

    def holds(self, name: str) -> bool:
        """Whether a start tag of this name opens a foreign element."""
        return bool(self._namespace(name))

    def enter(self, token: Token, document: str) -> bool:
        """Open an element; True for one of HTML."""
        name = token.name
        if not self._open and name not in ("svg", "math"):
            return True
        namespace = self._namespace(name)
        if name == "font" and any(one.name in ("color", "face", "size") for one in token.attributes):
            namespace = ""
        if not namespace:
            self._leave()
        if not (token.is_empty or name in VOID) and (namespace or self._open):
            has_html = bool(namespace) and name in _HTML_WITHIN[namespace]
            if name == "annotation-xml":
                encodings = [document[one.start : one.end] for one in token.attributes if one.name == "encoding"]
                has_html = [one.strip("\"'").lower() for one in encodings[:1]] in _ENCODINGS
            self._open.append((name, namespace, has_html))
            self._counts[name] += 1
        return not namespace

    def leave(self, name: str) -> None:
        """Close an element and those within it; an end tag without a start tag closes nothing."""
        if name in ("br", "p") and self.is_inside:
            self._leave()
        elif self._counts[name]:
            while self._pop() != name:
                pass

    def _namespace(self, name: str) -> str:
        if name in ("svg", "math"):
            return name
        _, namespace, has_html = self._open[-1] if self._open else ("", "", True)
        return "" if has_html or name in _BREAKING_OUT else namespace

    def _leave(self) -> None:
        """Close foreign elements up to one with HTML inside."""
        while self._open and self._open[-1][1] and not self._open[-1][2]:
            self._pop()

    def _pop(self) -> str:
        name = self._open.pop()[0]
        self._counts[name] -= 1
        return name
