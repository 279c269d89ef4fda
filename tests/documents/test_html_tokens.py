"""HTML tokens, against an independent tokenizer."""

from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.documents.html_tokens import html_tokens

PIECES = (
    "< > / = \" ' a b - ! <b> </b> <p/ <!-- --> --!> <! <? </ <script> </script> <title> </title> <style> </style> x=1 "
    "<br/> <textarea> </textarea <![CDATA[ ]]> <SCRIPT <!--> <plaintext> é &amp; &lt"
).split()
MORE_PIECES = (" ", "\n", '<p title="3 < 4">', "<a href=x>", '<img alt="x"/>', "<!doctype html>")


def events(document: str) -> list[tuple[object, ...]]:
    """Tokens without comments and declarations; neighbouring texts are one."""
    found: list[tuple[object, ...]] = []
    for token in html_tokens(document):
        written = document[token.start : token.end]
        if token.kind in ("text", "raw"):
            add_text(found, unescape(written) if token.kind == "text" else written)
        elif token.kind == "start":
            attributes: dict[str, str] = {}
            for one in token.attributes:
                value = document[one.start : one.end]
                attributes.setdefault(one.name, unescape(value[1:-1] if value[:1] in ("'", '"') else value))
            found.append(("start", token.name, attributes))
        elif token.kind == "end":
            found.append(("end", token.name))
    return found


def add_text(found: list[tuple[object, ...]], text: str) -> None:
    if found and found[-1][0] == "text":
        found[-1] = ("text", f"{found[-1][1]}{text}")
    elif text:
        found.append(("text", text))


def peer_events(document: str) -> list[tuple[object, ...]]:
    stream = pytest.importorskip("justhtml.parser.stream").stream
    found: list[tuple[object, ...]] = []
    for kind, value in stream(document):
        if kind == "text":
            add_text(found, value)
        elif kind == "start":
            found.append(("start", *value))
        elif kind == "end":
            found.append(("end", value))
    return found


def is_comparable(document: str) -> bool:
    """Whether the peer follows the standard: in end tags it takes quotes for attribute values without a name."""
    tokens = [*html_tokens(document)]
    return not any(
        (token.kind == "end" and any(mark in document[token.start : token.end] for mark in "\"'"))
        or any(one.name.startswith("=") for one in token.attributes)
        or (token.kind == "other" and document.startswith("</", token.start) and token.end == len(document))
        for token in tokens
    )


@settings(max_examples=400)
@given(st.lists(st.sampled_from((*PIECES, *MORE_PIECES)), max_size=14).map("".join))
def test_tokens_are_those_of_the_standard(document: str):
    assert "".join(document[token.start : token.end] for token in html_tokens(document)) == document
    if is_comparable(document):
        assert events(document) == peer_events(document)


@pytest.mark.parametrize(
    ("document", "kinds"),
    [
        ("<svg><style><b>x</style></svg>", "start start start text end end"),
        ("<math><mi><style><b>x</style></mi></math>", "start start start raw end end end"),
        ("<svg><![CDATA[<b>]]></svg><![CDATA[<b>]]>", "start raw end other text"),
        ("<svg><p><style><b></style>", "start start start raw end"),
        ("<svg><desc><style><b></style></desc><style><b>", "start start start raw end end start start"),
        (
            "<svg><font><style><b></style></svg><svg><font color=x><style><b>",
            "start start start start end end start start start raw",
        ),
        ('<math><annotation-xml encoding="text/html"><style><b>', "start start start raw"),
        ("<script><!--<script></script>x</script>y", "start raw end text"),
        ("<script><!--></script>y", "start raw end text"),
        ("<svg/><style><b>", "start start raw"),
    ],
)
def test_foreign_content_and_scripts(document: str, kinds: str):
    assert " ".join(token.kind for token in html_tokens(document)) == kinds


@pytest.mark.parametrize(
    ("declaration", "following"),
    [
        ('<!DOCTYPE doc [<!ENTITY c "x">\n]>', "start"),
        ("<!DOCTYPE doc [<!-- ]> ' --><?x ]> ?><!ENTITY c ']>'>] >", "start"),
        ('<!DOCTYPE doc SYSTEM "a>b">', "start"),
        ("<!DOCTYPE doc>", "start"),
        ("<!DOCTYPE doc [<!ENTITY c 'x>]>", ""),
        ("<!DOCTYPE doc [<!--", ""),
    ],
)
def test_a_declaration_of_xml_ends_behind_its_brackets(declaration: str, following: str):
    kinds = [token.kind for token in html_tokens(f"{declaration}<doc>a</doc>", is_xml=True)]
    assert kinds == ["other", following, "text", "end"][: 4 if following else 1]


def test_a_declaration_of_html_ends_at_its_first_sign():
    assert next(token.end for token in html_tokens('<!DOCTYPE doc [<!ENTITY c "x">]>')) == 30
