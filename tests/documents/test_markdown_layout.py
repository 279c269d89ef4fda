"""Layout of Markdown beyond CommonMark: it stays, and the texts within it are translated."""

import pytest

from heedful.documents.markdown import MarkdownFile
from heedful.documents.markdown_blocks import text_blocks
from heedful.text.tagged_text import TaggedText
from tests.documents.changed import in_capitals, texts


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("- [ ] ein hund\n- [x] x\n  1. [X] y\n", "- [ ] EIN HUND\n- [x] X\n  1. [X] Y\n"),
        ("- [ ]\n- [y] z\n\n[ ] w\n", "- [ ]\n- \\[Y\\] Z\n\n\\[ \\] W\n"),
        ("a[^1] b [^n] c.\n\n[^1]: eine frau.\n[^n]: frau\n", "A[^1] B [^n] C.\n\n[^1]: EINE FRAU.\n[^n]: FRAU\n"),
        ("[^a]: a\n    b\n\n    - c\n\nd\n", "[^a]: A B\n\n    - C\n\nD\n"),
        ("[^1]:\n    a\n[^2]:\n\nb\n", "[^1]:\n    A\n[^2]:\n\nB\n"),
        ('[^1]: a\n[ref]: http://x.de "t u"\n[^2]: b\n', '[^1]: A\n[ref]: http://x.de "t u"\n[^2]: B\n'),
        ("[^1]: [^2]: a b\n", "[^1]: [^2]: A B\n"),
        ("> [!NOTE]\n> ein hund\n> läuft\n", "> [!NOTE]\n> EIN HUND LÄUFT\n"),
        ("> [!tip]- titel\n> ein hund\n\n[!NOTE]\n", "> [!tip]- TITEL\n> EIN HUND\n\n[!NOTE]\n"),
        (
            ":::note Titel\nein hund\n:::\n\n::: {.x}\n- a\n::::\n",
            ":::note Titel\nEIN HUND\n:::\n\n::: {.x}\n- A\n::::\n",
        ),
        ("a $x^2$ b, $$y_i$$ c: 5 $ und 6 $.\n", "A $x^2$ B, $$y_i$$ C: 5 $ UND 6 $.\n"),
        ("von $5 auf $6, a$b$ $5, dann 6$\n", "VON $5 AUF $6, A$B$ $5, DANN 6$\n"),
        ("a\n$$\nx = y\n\nz\n$$\nb\n\n$$x$$\n\n$$\nc\n", "A\n$$\nx = y\n\nz\n$$\nB\n\n$$x$$\n\n$$ C\n"),
        ("a &amp; b &lt;c&gt; \\* d \\_e\\_f 1\\. \\$ *g*\n", "A &amp; B &lt;C&gt; \\* D \\_E\\_F 1\\. \\$ *G*\n"),
        ("AT&T &c; &nbsp;x &amp\n", "AT&T \\&C; &nbsp;X &AMP\n"),
        (
            "drück <kbd>Strg</kbd>+<KBD>c</KBD> <kbd>x <!-- y --> z\n",
            "DRÜCK <kbd>Strg</kbd>+<KBD>c</KBD> <kbd>X <!-- y --> Z\n",
        ),
        (
            '<div class="a">ein <b>mann</b>\n&amp; x</div>\n\n*a*\n',
            '<div class="a">EIN <b>MANN</b> &amp; X</div>\n\n*A*\n',
        ),
        (
            "> <details>\n> <summary>mehr</summary>\n>\n> a\n> </details>\n",
            "> <details>\n> <summary>MEHR</summary>\n>\n> A\n> </details>\n",
        ),
        ("- <p>a\n  <img alt='b'>\n  c</p>\n", '- <p>A <img alt="B"> C</p>\n'),
        ("<b>\na c</b>\n\n<script>\nx\n\ny</script>\n", "<b>\nA C</b>\n\n<script>\nx\n\ny</script>\n"),
        ("> <div>a\n>b\n> </div>\n", "> <div>a\n>b\n> </div>\n"),
        ("---\na: b\n---\n- [x] x\n<div>\nz\n</div>\n", "---\na: b\n---\n- [x] X\n<div>\nZ\n</div>\n"),
    ],
)
def test_layout_stays_and_texts_are_translated(source: str, expected: str):
    assert in_capitals(".md", source) == expected


def test_a_number_of_notes_is_a_point():
    (passage,) = MarkdownFile(b"a[^1] b\n", 0).passages
    assert passage.text == "a b"
    assert texts(".md", "a $x$ `y` <kbd>z</kbd>") == ["a x y z"]


def test_a_translation_becomes_no_html():
    for source in ("<div>a</div>\n", "<b>\na</b>\n", "a &lt; b\n"):
        document = MarkdownFile(source.encode(), 0)
        written = document.write([TaggedText("<i>[x](y)", one.tags) for one in document.passages]).decode()
        assert "<i>" not in written
        assert len(text_blocks(written)) == 1
