"""Rules of markup: which elements are blocks, which stand within a sentence, and which are not translated."""

from collections.abc import Set
from dataclasses import dataclass, field, replace
from typing import Final, Literal, final

from heedful.documents.html_tokens import html_tokens

_BLOCKS: Final = frozenset(
    "address article aside base blockquote body button caption center col colgroup datalist dd details dialog dir div "
    "dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html label "
    "legend li link listing main menu meta nav noframes ol optgroup option p param plaintext pre search section "
    "select source summary table tbody td template tfoot th thead title tr track ul xmp".split()
)
"""Elements that begin and end a passage; all others, also unknown ones, stand within a sentence."""
_KEPT: Final = frozenset("code kbd samp var tt".split())
"""Inline elements whose text stays, as a part of the sentence."""
_OPAQUE: Final = frozenset(
    "iframe listing math noembed noframes noscript plaintext pre script style svg template textarea xmp".split()
)
"""Elements whose content stays, and is no part of a sentence."""
_OPTIONAL_ENDS: Final = frozenset("p li dt dd option optgroup tr td th tbody thead tfoot".split())
"""Elements that end where a sibling begins, or their parent ends."""


@final
@dataclass(frozen=True)
class MarkupRules:
    """Rules of one kind of markup."""

    blocks: Set[str] = _BLOCKS
    """Names of elements that begin and end a passage; all others stand within a sentence."""
    kept: Set[str] = _KEPT
    """Elements within a sentence whose text stays as it is."""
    opaque: Set[str] = _OPAQUE
    """Elements whose content stays, and is no part of a sentence."""
    optional_ends: Set[str] = _OPTIONAL_ENDS
    """Elements that may lack an end tag."""
    is_xml: bool = False
    """Whether names have case, each element has an end, and no element holds raw text."""
    has_html: bool = True
    """Whether names mean what they mean in HTML: attributes that people read, and line breaks."""


HTML: Final = MarkupRules()
XHTML: Final = MarkupRules(optional_ends=frozenset(), is_xml=True)


@final
@dataclass(frozen=True)
class TagHandling:
    """Request for the treatment of tags, in the terms of DeepL."""

    kind: Literal["html", "xml"] = "html"
    ignored: Set[str] = field(default_factory=frozenset[str])
    """Elements whose text is not translated."""
    splitting: Set[str] = field(default_factory=frozenset[str])
    """Elements that always end a sentence."""
    non_splitting: Set[str] = field(default_factory=frozenset[str])
    """Elements that never end a sentence."""
    has_outline: bool = True
    """Whether elements of XML that never stand beside text end a sentence too."""

    def rules(self, document: str) -> MarkupRules:
        """Find the rules for a document.

        Example:
            >>> sorted(TagHandling("xml").rules("<a><p>x <b>y</b></p><p>z</p></a>").blocks)
            ['a', 'p']
        """
        if self.kind == "html":
            blocks = (_BLOCKS | self.splitting) - self.non_splitting
            return replace(HTML, blocks=blocks, kept=_KEPT | self.ignored)
        outline = _outline(document) if self.has_outline else frozenset[str]()
        nothing = frozenset[str]()
        blocks = (outline | self.splitting) - self.non_splitting
        return MarkupRules(blocks, self.ignored, nothing, nothing, is_xml=True, has_html=False)


def _outline(document: str) -> Set[str]:
    """Names of elements that never stand beside text."""
    names: set[str] = set()
    inline: set[str] = set()
    children: list[set[str]] = [set()]  # names of the children of each open element, the document first
    has_text = [False]
    for token in html_tokens(document, is_xml=True):
        if token.kind == "text":
            has_text[-1] = has_text[-1] or not document[token.start : token.end].isspace()
        elif token.kind == "start":
            names.add(token.name)
            children[-1].add(token.name)
            if not token.is_empty:
                children.append(set())
                has_text.append(False)
        elif token.kind == "end" and len(children) > 1:
            beside = children.pop()
            inline |= beside if has_text.pop() else set()
    for beside, is_mixed in zip(children, has_text, strict=True):
        inline |= beside if is_mixed else set()
    return names - inline
