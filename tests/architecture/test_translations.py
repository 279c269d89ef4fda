"""Translations: a Chinese page is in step with the English one, section by section."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.package import ROOT


@pytest.fixture(scope="module")
def translations() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("make_translations")
    sys.path.remove(str(ROOT / "docs"))


def test_no_chinese_page_is_behind_its_english_one(translations: Any):
    assert {"docs/guide.md", "docs/course/03_bottleneck.py"} < set(translations.documents())
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


LESSON = """# %% [markdown] lang="en"
# # 1 All
#
# Text.

# %% [markdown] lang="zh"
# # 1 全部
#
# 文字。

# %%
print(1)

# %% [markdown] lang="en"
# More.

# %% [markdown] lang="zh"
# 更多。

# %% picture="curve" alt="A curve" alt_zh="一条曲线"
plt.show()
"""


@pytest.mark.parametrize(
    ("old", "new", "cell"),
    [("Text.", "Texts.", "1-all"), ("More", "Still more", "1-all-again"), ("A curve", "A line", "picture-curve")],
)
def test_an_english_cell_that_changes_alone_makes_the_chinese_one_stale(
    old: str, new: str, cell: str, translations: Any
):
    noted = translations.lesson_hashes(LESSON)
    changed = LESSON.replace(old, new)
    assert translations.stale(noted, translations.lesson_hashes(changed)) == [cell]
    for chinese in ("文字", "更多", "曲线"):
        changed = changed.replace(chinese, f"别的{chinese}")
    assert translations.stale(noted, translations.lesson_hashes(changed)) == []
    assert translations.stale(noted, translations.lesson_hashes(LESSON.replace("print(1)", "print(2)"))) == []


def test_a_lesson_whose_cells_are_no_pairs_is_refused(translations: Any):
    with pytest.raises(ValueError, match="2 cells in English, 1 in Chinese"):
        translations.lesson_hashes(LESSON.replace('lang="zh"', "", 1))


def test_a_stale_cell_is_named(translations: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lesson = "docs/course/03_bottleneck.py"
    noted = {lesson: {key: list(texts) for key, texts in translations.read(lesson).items()}}
    noted[lesson]["the-decoder"][0] = "0" * 12
    monkeypatch.setattr(translations, "documents", lambda: [lesson])
    (tmp_path / "noted.json").write_text(json.dumps(noted), encoding="utf-8")
    monkeypatch.setattr(translations, "NOTED", tmp_path / "noted.json")
    assert translations.problems() == [f"{lesson}: the Chinese cell of 'the-decoder' is behind the English one"]
