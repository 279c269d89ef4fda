"""First pages and the guide do not repeat each other: one says a thing, the others link to it."""

import itertools
import re

import pytest

from tests.architecture.package import ROOT
from tests.architecture.test_documents import FENCE

PAGES = ("README.md", "CONTRIBUTING.md", "docs/start.md", "docs/guide.md")
RUN = 10
"""Words in a row that no two pages share."""


def runs(text: str) -> set[tuple[str, ...]]:
    """All runs of words of a page, without its blocks and the addresses of its links."""
    prose = re.sub(r"\]\([^)]*\)", "]", FENCE.sub(" | ", text))
    words = re.findall(r"[\w'-]+", prose.lower())
    return {tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}


@pytest.mark.parametrize(("first", "second"), [*itertools.combinations(PAGES, 2)])
def test_no_two_pages_share_a_sentence(first: str, second: str):
    texts = [(ROOT / name).read_bytes().decode("utf-8") for name in (first, second)]
    assert [" ".join(run) for run in runs(texts[0]) & runs(texts[1])] == []


def test_a_repeated_sentence_is_seen_whatever_its_links_and_capitals():
    text = "Short items such as words, names and dates are split into characters."
    assert len(runs(text) & runs(text.replace("words", "[Words](page.md)"))) == 3
    assert not runs(text) & runs(text.replace("names", "texts"))
    assert not runs(f"```\n{text}\n```") & runs(text)
