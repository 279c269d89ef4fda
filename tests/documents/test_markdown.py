"""Markdown as passages, and written again."""

import pytest

from heedful.documents.markdown import MarkdownFile
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
