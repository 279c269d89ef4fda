"""Translations: a Chinese page is in step with the English one, section by section."""

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.architecture.package import ROOT


@pytest.fixture(scope="module")
def translations() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("make_translations")
    sys.path.remove(str(ROOT / "docs"))


def test_no_chinese_page_is_behind_its_english_one(translations: Any):
    assert "docs/guide.md" in translations.documents()
    # Mend the Chinese section, or run docs/make_translations.py if the English change needs no other translation.
    assert translations.problems() == []


ENGLISH, CHINESE = "# All\n\nText.\n\n## One\n\n```\n# no\n```\n", "# 全部\n\n文字。\n\n## 一\n\n```\n# 不\n```\n"


def test_an_english_section_that_changes_alone_makes_the_chinese_one_stale(translations: Any):
    noted = translations.hashes(ENGLISH, CHINESE)
    assert [*noted] == ["all", "one"]
    changed = ENGLISH.replace("Text", "Another text")
    assert translations.stale(noted, translations.hashes(changed, CHINESE)) == ["all"]
    assert translations.stale(noted, translations.hashes(changed, CHINESE.replace("文字", "别的文字"))) == []
    assert translations.stale(noted, translations.hashes(ENGLISH, CHINESE.replace("文字", "别的文字"))) == []
    assert translations.stale(noted, translations.hashes(ENGLISH.replace("# no", "# yes"), CHINESE)) == ["one"]
    # Blanks at the ends of lines, and the line that leads to the other language, are no change.
    assert translations.stale(noted, translations.hashes(f"[中文](all.zh.md)\n{ENGLISH} ", CHINESE)) == []
    with pytest.raises(ValueError, match="2 sections in English, 1 in Chinese"):
        translations.hashes(ENGLISH, "# 全部\n")
