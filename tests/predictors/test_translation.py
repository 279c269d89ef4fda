"""Translations: made of tokens that the vocabulary has, and drawn in a notebook, offline, also beside another one."""

from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from heedful.errors import FileRefused
from heedful.predictors.translation import Alternative, Translation, decoded_texts
from heedful.search.interface import Hypothesis
from heedful.text.tokenizer import Tokenizer
from tests.pages.browser import Tab, chromium, needs_chromium
from tests.thorough import thorough


def translation(target: str = "Haus") -> Translation:
    alternatives = (Alternative(f"Das {target}", -0.5, -0.1), Alternative("<b>Ein</b>", -2.0, -0.7))
    weights = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], dtype=np.float32)
    pieces = ("▁The", "▁house", "</s>"), ("▁Das", f"▁{target}", "</s>")
    return Translation("The house", f"Das {target}", -0.5, -0.1, alternatives, *pieces, weights)


def test_without_attention_it_is_text():
    plain = Translation("a < b", "<script>", -1.0, -1.0, (Alternative("<script>", -1.0, -1.0),))
    assert plain._repr_html_() == "<p dir='auto'>a &lt; b → &lt;script&gt;</p>"


def test_the_page_is_inside_a_frame_that_may_not_reach_out():
    written = translation()._repr_html_()
    assert written.startswith('<iframe srcdoc="')
    assert 'sandbox="allow-scripts allow-downloads"' in written
    assert "default-src 'none'" in unescape(written)
    assert "<b>" not in written


@thorough
@needs_chromium
def test_two_translations_in_one_document_do_not_interfere(tmp_path: Path):
    path = tmp_path / "notebook.html"
    body = "".join(translation(target)._repr_html_() for target in ("Haus", "Heim"))
    path.write_text(f"<!DOCTYPE html><div id=view><p>{body}</div>", encoding="utf-8", newline="\n")
    with chromium() as browser:
        tab: Any = Tab(browser, path.as_uri())
        frames = [tab.page.frame_locator("iframe").nth(index) for index in (0, 1)]
        assert [frame.locator("#output .word").all_text_contents() for frame in frames] == [
            ["Das", "Haus", "⏎"],
            ["Das", "Heim", "⏎"],
        ]
        frames[1].locator(".links .lower .word").nth(1).hover()
        assert frames[1].locator(".word.hot").all_text_contents() == ["Heim", "Heim"]
        assert frames[0].locator(".word.hot").count() == 0
        frames[0].get_by_role("button", name="<b>Ein</b>").click()
        assert frames[0].locator("#output .word").all_text_contents() == ["<b>Ein</b>"]
        assert frames[1].locator("nav button").count() == 3
        tab.close()


def test_tokens_that_the_vocabulary_lacks_are_refused():
    class Letters:
        def __len__(self) -> int:
            return 30

        def decode(self, ids: tuple[int, ...]) -> str:
            return "".join(chr(97 + each) for each in ids)

    def hypothesis(*ids: int) -> Hypothesis:
        return cast("Hypothesis", SimpleNamespace(token_ids=ids))

    tokenizer = cast("Tokenizer", Letters())
    assert decoded_texts(tokenizer, [hypothesis(0, 1), hypothesis()]) == ["ab", ""]
    with pytest.raises(FileRefused, match="the engine gives token 30, but the vocabulary has 30; export"):
        decoded_texts(tokenizer, [hypothesis(0), hypothesis(1, 30)])
