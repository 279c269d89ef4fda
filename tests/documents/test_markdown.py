"""Markdown as passages, and written again."""

import random

import pytest
from markdown_it import MarkdownIt

from heedful.documents import markdown_blocks
from heedful.documents.markdown import MarkdownFile
from heedful.documents.markdown_blocks import text_blocks
from heedful.text.tagged_text import TaggedText
from tests.documents.changed import in_capitals, texts

PAGE = """---
title: x
---
# a *red* dog

a [link](http://x.de "t"), `code` and **bold _and italic_**
on two lines \\* here.  
New line <b>html</b> <http://a.b> snake_case ![picture](a.png)

> quoted
> words

- one
- two [there][1]

| a | b |
|---|---|
| c | *d* |

```
code
```

[1]: http://x
"""


def test_blocks_are_passages_and_marks_are_tags():
    assert texts(".md", PAGE) == [
        "a red dog",
        "a link, code and bold and italic on two lines * here.",
        "New line html http://a.b snake_case picture",
        "quoted words",
        "one",
        "two there",
        *"abcd",
    ]
    changed = in_capitals(".md", PAGE)
    assert 'A [LINK](http://x.de "t"), `code` AND **BOLD _AND ITALIC_** ON TWO LINES \\* HERE.  \n' in changed
    assert "NEW LINE <b>HTML</b> <http://a.b> SNAKE_CASE ![PICTURE](a.png)" in changed
    assert "> QUOTED WORDS\n\n- ONE\n- TWO [THERE][1]\n\n| A | B |\n|---|---|\n| C | *D* |\n" in changed
    assert changed.startswith("---\ntitle: x\n---\n# A *RED* DOG\n")
    assert changed.endswith("```\ncode\n```\n\n[1]: http://x\n")


def test_images_before_a_text_are_passages_of_their_own_and_numbers_in_brackets_stay():
    page = "![a dog](a.png) ![](b.png)  A *dog* [1], [2].\n\n"
    page += '![a cat](c.png "x")\nThe ![x](y) [1](z) cat\n\n![alone](d.png)\n'
    assert texts(".md", page) == ["a dog", "A dog 1, 2.", "a cat", "The x 1 cat", "alone"]
    assert in_capitals(".md", page) == (
        "![A DOG](a.png) ![](b.png)  A *DOG* [1], [2].\n\n"
        '![A CAT](c.png "x")\nTHE ![X](y) [1](z) CAT\n\n![ALONE](d.png)\n'
    )


@pytest.mark.parametrize(
    ("output", "written"),
    [
        ("<script>x</script>", "\\<script\\>x\\</script\\>"),
        ("[x](javascript:x) `y` *z* _w_ a_b &lt;", "\\[x\\](javascript:x) \\`y\\` \\*z\\* \\_w\\_ a_b \\&lt;"),
        ("1. x", "1\\. x"),
        ("- x", "\\- x"),
        ("# x | y", "\\# x \\| y"),
    ],
)
def test_a_translation_becomes_no_mark(output: str, written: str):
    assert MarkdownFile(b"a\n", 0).write([TaggedText(output)]).decode() == written + "\n"


def random_pages() -> list[str]:
    """Documents that are mostly marks of blocks."""
    pieces = (
        "a",
        "b c",
        "\n",
        "\n\n",
        "    ",
        "\t",
        "#",
        "# ",
        "- ",
        "1. ",
        "2) ",
        "+ ",
        "* ",
        "> ",
        "---",
        "===",
        "***",
    )
    pieces += ("```", "~~~", "|", "| --- |", ":-:", "[x]: /y", "[x]", "<p>", "<!--", "\\", "_", "`")
    generator = random.Random(1)
    return ["".join(generator.choices(generator.sample(pieces, 5), k=14)) for _ in range(400)]


def test_blocks_are_those_of_the_parser():
    parser = MarkdownIt("commonmark").enable("table")
    for page in [PAGE, *random_pages()]:
        inline = [token for token in parser.parse(page) if token.type == "inline" and token.content.strip()]
        found = [(block.line, block.content) for block in text_blocks(page) if not block.is_html]
        assert found == [(token.map[0], token.content) for token in inline if token.map], page


def test_rules_that_cannot_apply_change_nothing(monkeypatch: pytest.MonkeyPatch):
    pages = random_pages()

    def changed() -> list[bytes]:
        opened = [MarkdownFile(text.encode(), 10**6) for text in pages]
        return [each.write([TaggedText(one.text + "!", one.tags) for one in each.passages]) for each in opened]

    quick = changed()
    monkeypatch.setattr(markdown_blocks, "_MARKS_OF_RULES", {})
    assert quick == changed()
    assert sum(one != text.encode() for one, text in zip(quick, pages, strict=True)) > 300
    for rule in ("code", "fence", "blockquote", "list", "html_block", "heading", "lheading"):  # it would notice
        monkeypatch.setattr(markdown_blocks, "_MARKS_OF_RULES", {rule: ("\0",)})
        assert changed() != quick, rule
