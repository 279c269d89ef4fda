"""Hook of the site generator: mathematics becomes MathML and indices when the site is built, and code breaks well."""

import html
import re
from typing import Final
from xml.etree import ElementTree

from latex2mathml.converter import convert

FORMULA: Final = re.compile(r'<(span|div) class="arithmatex">\s*\\[(\[](.*?)\\[)\]]\s*</\1>', re.DOTALL)
LETTERS: Final = re.compile(r'<mrow>((?:<mi mathvariant="normal">\w</mi>)+)</mrow>')
"""Name of a function, which the converter cuts into letters."""
NAMESPACE: Final = "http://www.w3.org/1998/Math/MathML"
FUNCTION: Final = re.compile(r"[a-z]{2,}|arg\u2009(?:max|min)")
"""Name that stands before its argument, such as log or softmax."""
BARS: Final = frozenset("|‖")
ENDED: Final = re.compile(
    r"(<math\b[^>]*display=\"inline\"(?:(?!<math).)*?</math>)([,.;:!?)，。；：、！？）]+)", re.DOTALL
)
"""Formula in a sentence with the marks behind it, which begin no line."""
TEXT: Final = re.compile(r"<(pre|code|math|svg|script|style)\b.*?</\1>|<[^>]*>|([^<]+)", re.DOTALL)
CODE: Final = re.compile(r"<pre\b.*?</pre>|(<code\b[^>]*>)(.*?)</code>", re.DOTALL)
INDEX: Final = re.compile(
    r"((?<![\w/.&#-])(?:[A-Za-zα-ωΑ-Ω]|sum|alpha|beta|theta|lambda|softmax)̃?|[\])])"
    r"_(\{[^{}]+\}|(?:&lt;)?[A-Za-zα-ω0-9']+)(?!_)"
)
"""As in `a_ij`, `s_{i-1}` and `(W q)_j`: names of one letter or one Greek letter, and never names of Python."""
POWER: Final = re.compile(r"(?<=[\w)}|])\^(\{[^{}]+\}|\([^()]*\)|-?\w+(?:\.\d+)?)")
BEFORE_CODE: Final = re.compile(r"(?<=[、，。：；！？）」])(?=<code)")
"""Place between a Chinese mark and code, at which a line may break; browsers break none before a hyphen."""
PERCENT: Final = re.compile(r"(?<=\d) (?=%)")
CELL: Final = re.compile(r"<td( style=[^>]*)?>(.*?)</td>", re.DOTALL)
INTERVAL: Final = re.compile(r"(?<=\[)([-+\d.]+,) (?=[-+\d.]+\])")
HEADING: Final = re.compile(r"<h[1-6]\b.*?</h[1-6]>", re.DOTALL)
EMPHASIS: Final = re.compile(r"(<p>)?<em>(.*?)</em>(</p>)?", re.DOTALL)
CHINESE: Final = re.compile(r"[\u2e80-\u9fff]")
RAISES: Final = re.compile(r'(class="doc-section-title">)引发：')
"""Heading that the generator gives to the errors of a function; Chinese documents have another."""
OPTION: Final = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
NAME: Final = re.compile(r"\S+")
BREAK: Final = re.compile(r"(?<=[\w}][._/=,])(?<!\d[.,](?=\d))(?=[\w{])|(?<=\w)(?=\|)")
HUMP: Final = re.compile(r"(?<=[a-z]{3})(?=[A-Z][a-z])")
"""Place within a name such as MultiQueryVectorAttention."""
SHORT: Final = 24
"""Characters of a name that is broken on phones alone."""
LONG: Final = 60
"""Characters of a cell that needs a wide column; a Chinese one counts twice."""
SEVERAL: Final = 20
"""Characters of a cell that needs a column of some width."""


def on_page_content(content: str, **_: object) -> str:
    """Rewrite what the generator leaves to be desired.

    Args:
        content: HTML of a page.

    Returns:
        The HTML with MathML, indices, places where code may break, and wide columns for long texts.
    """
    content = ENDED.sub(r'<span class="whole">\1\2</span>', FORMULA.sub(_formula, content))
    content = TEXT.sub(_with_indices, content)
    content = CELL.sub(_cell, CODE.sub(_breakable, BEFORE_CODE.sub("<wbr>", content)))
    content = HEADING.sub(_breakable_heading, RAISES.sub(r"\1异常：", content))
    return EMPHASIS.sub(_emphasis, content)


def on_post_template(content: str, template_name: str, **_: object) -> str:
    """Mend the links to the languages on the page of missing addresses, which the theme begins with two slashes.

    Args:
        content: HTML of a template.
        template_name: file of the template.

    Returns:
        The HTML, whose links stay on the site.
    """
    return content.replace('href="//./', 'href="/') if template_name == "404.html" else content


def _formula(match: re.Match[str]) -> str:
    source = html.unescape(match[2]).strip()
    return _mathml(source, "inline") if match[1] == "span" else display(source)


def display(source: str) -> str:
    """Convert a formula that stands by itself.

    Formulas beside each other stand below each other where there is no room; a wide one is scrolled, by keys too.

    Args:
        source: TeX.

    Returns:
        MathML in a box.
    """
    parts = (f'<div tabindex="0">{_mathml(part.strip(), "block")}</div>' for part in source.split(r"\qquad"))
    return f'<div class="formula">{"".join(parts)}</div>'


def _mathml(source: str, display: str) -> str:
    converted = LETTERS.sub(lambda name: f"<mi>{re.sub('<[^>]*>', '', name[1])}</mi>", convert(source, display=display))
    ElementTree.register_namespace("", NAMESPACE)
    root = ElementTree.fromstring(converted.replace("<mi>;</mi>", '<mo separator="true">;</mo>'))
    parents = {child: parent for parent in root.iter() for child in parent}
    for parent in root.iter():
        _pair_bars([child for child in parent if _core(child).text in BARS])
    for leaf in root.iter():
        if leaf.text == "′":
            leaf.tag = f"{{{NAMESPACE}}}mo"
            leaf.attrib |= {"lspace": "0", "rspace": "0"}
        elif FUNCTION.fullmatch(leaf.text or "") and leaf.tag.endswith(("}mi", "}mo")):
            _space_name(leaf, parents)
    return ElementTree.tostring(root, encoding="unicode")


def _core(element: ElementTree.Element) -> ElementTree.Element:
    """Element that carries an index or a power, below all of them."""
    while element.tag.endswith(("}msub", "}msup", "}msubsup")) and len(element):
        element = element[0]
    return element


def _pair_bars(bars: list[ElementTree.Element]) -> None:
    """Set bars around what they enclose; one alone, as in p(y | x), keeps its room."""
    for index, bar in enumerate(bars if len(bars) % 2 == 0 else []):
        form = "postfix" if index % 2 else "prefix"
        _core(bar).attrib |= {"form": form, "stretchy": "false", "lspace": "0", "rspace": "0"}


def _space_name(name: ElementTree.Element, parents: dict[ElementTree.Element, ElementTree.Element]) -> None:
    """Set the name of a function off from what it is of, but not from a bracket."""
    whole = name
    while (
        whole in parents and parents[whole].tag.endswith(("}msub", "}msup", "}msubsup")) and parents[whole][0] is whole
    ):
        whole = parents[whole]
    beside = [*parents[whole]] if whole in parents else [whole]
    place = beside.index(whole)
    before, after = (
        _core(each) for each in ((beside[place - 1] if place else whole), (beside[place + 1 :] or [whole])[0])
    )
    is_operand = place > 0 and (not before.tag.endswith("}mo") or (before.text or "") in ")]")
    room = {True: "0.17em", False: "0"}
    name.tag = f"{{{NAMESPACE}}}mo"
    name.attrib |= {
        "lspace": room[is_operand],
        "rspace": room[after is not _core(whole) and (after.text or "") not in "([{"],
    }


def _with_indices(match: re.Match[str]) -> str:
    return PERCENT.sub("&nbsp;", _indices(match[2])) if match[2] else match[0]


def _indices(text: str) -> str:
    text = INDEX.sub(lambda index: f"{index[1]}<sub>{_indices(index[2].strip('{}'))}</sub>", text)
    return POWER.sub(lambda power: f"<sup>{power[1].strip('(){}')}</sup>", text)


def _breakable(match: re.Match[str]) -> str:
    """Code in a line: options stay whole, and names break behind points and underscores, short ones on phones alone."""
    if not match[1]:
        return match[0]
    return f"{match[1]}{re.sub(r'(<[^>]*>)|([^<]+)', lambda part: part[1] or _pieces(part[2]), match[2])}</code>"


def _emphasis(match: re.Match[str]) -> str:
    """Emphasis of Chinese words, which have no slanted form: that of a whole paragraph is a caption."""
    if not CHINESE.search(match[2]):
        return match[0]
    kind = "caption" if match[1] and match[3] else "stressed"
    return f'{match[1] or ""}<em class="{kind}">{match[2]}</em>{match[3] or ""}'


def _breakable_heading(match: re.Match[str]) -> str:
    """Heading whose names break behind points and underscores outside of code too."""
    return TEXT.sub(
        lambda part: (
            NAME.sub(lambda name: HUMP.sub("<wbr>", BREAK.sub("<wbr>", name[0])), part[2]) if part[2] else part[0]
        ),
        match[0],
    )


def _pieces(text: str) -> str:
    text = NAME.sub(lambda name: BREAK.sub("<wbr>" if len(name[0]) > SHORT else '<wbr class="narrow">', name[0]), text)
    return OPTION.sub(lambda option: f'<span class="option">{option[0]}</span>', text)


def _cell(match: re.Match[str]) -> str:
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", "", match[2])).split())
    length = sum(2 if character > "⺀" else 1 for character in text)
    kind = ' class="long"' if length > LONG else ' class="several"' if length > SEVERAL else ""
    content = INTERVAL.sub(r"\1&nbsp;", match[2])
    return f"<td{kind}{match[1] or ''}>{content}</td>"
