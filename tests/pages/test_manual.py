"""Manual: sections of the documents, found by their headings, and pages whose links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.cli.failures import explain
from heedful.errors import (
    ConfigError,
    DamagedFile,
    DataError,
    MissingExtra,
    NonFiniteError,
    ResourceError,
    Stopped,
    UsageError,
)
from heedful.pages.manual import DOCUMENTS, FORMULA, LANGUAGES, find_section, sections, write_pages
from tests.architecture.package import ROOT
from tests.cli.command import heedful


def test_a_section_is_found_by_its_heading_or_by_words_of_it():
    section = find_section("data-that-cannot-be-read")
    assert section.text.startswith("### Data that cannot be read\n")
    assert "### " not in section.text[4:]
    assert find_section("Cannot READ data").anchor == section.anchor
    chinese = find_section("data-that-cannot-be-read", "zh")
    assert (chinese.anchor, chinese.title) == (section.anchor, "读不了的数据")
    assert find_section("读不了", "zh") == chinese
    assert find_section("guide").text.startswith("# Guide\n")
    with pytest.raises(UsageError, match="no section about 'beem'"):
        find_section("beem")


def test_documents_have_chinese_titles():
    listed = [one for one in sections("zh") if one.anchor == one.page and one.title != "heedful"]
    assert len(listed) == len(DOCUMENTS) - 1
    assert [one.title for one in listed if not re.search("[一-鿿]", one.title)] == []


def test_headings_in_code_are_none():
    titles = {one.title for one in sections()}
    assert not any(title.startswith(("heedful ", "pip ", "!")) for title in titles)
    assert len({(one.page, one.anchor) for one in sections()}) > 100


@pytest.mark.parametrize("language", LANGUAGES)
def test_links_between_pages_lead_somewhere(language: str, tmp_path: Path):
    first = write_pages(tmp_path / "manual", language)
    pages = {path.name: path.read_text(encoding="utf-8") for path in first.parent.iterdir()}
    assert set(pages) == {f"{name}.html" for name in DOCUMENTS}
    for name, text in pages.items():
        assert f'<html lang="{language}">' in text
        assert "<img" not in text
        assert not re.search(r"<(script|link)", text)
        for link in re.findall(r'<a href="([^"]+)"', text):
            if link.startswith(("http:", "https:", "mailto:")):
                continue
            page, _, anchor = link.partition("#")
            target = pages[page or name]
            assert not anchor or f'id="{anchor}"' in target, f"{name}: {link}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_formulas_of_the_pages_are_mathematics(language: str, tmp_path: Path):
    first = write_pages(tmp_path / "manual", language)
    text = (first.parent / "attention.html").read_text(encoding="utf-8")
    number = len(FORMULA.findall((ROOT / "docs/attention.md").read_text(encoding="utf-8")))
    assert text.count('class="formula"') == number > 10
    assert text.count("</math>") >= number
    assert "$$" not in text
    assert not re.search(r"\\(frac|sum|mathrm|qquad)", re.sub(r"<code>.*?</code>", "", text))


def test_formulas_are_converted_as_they_stand():
    """Run docs/make_formulas.py after a formula has changed."""
    pytest.importorskip("latex2mathml")
    done = subprocess.run([sys.executable, ROOT / "docs/make_formulas.py", "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "")


def test_every_kind_of_error_has_its_section():
    kinds = [UsageError, ConfigError, DataError, DamagedFile, NonFiniteError, ResourceError]
    errors: list[BaseException] = [kind("x") for kind in kinds]
    others = MissingExtra("gensim", "vectors", "training"), ValueError("a bug"), MemoryError()
    topics = [explain(error).topic for error in (*errors, *others)]
    assert [find_section(topic).anchor for topic in topics] == topics
    assert len(set(topics)) == 8
    assert explain(Stopped("saved", 15)).topic == ""


def test_the_command_prints_and_writes(tmp_path: Path):
    done = heedful("docs", "finite", "loss")
    assert done.code == 2  # one topic, in quotes if it has blanks
    done = heedful("docs", "finite loss", "--language", "en")
    assert done.out.startswith("### A loss that is not finite\n")
    assert "bring-your-data" in heedful("docs", "--list").out
    done = heedful("docs", "--html", tmp_path / "manual", "--language", "zh")
    assert done.out == f"{tmp_path / 'manual/start.html'}\n"
    assert heedful("docs", "--html", tmp_path / "manual/start.html/more").code == 5


def test_the_wheel_has_every_document_of_the_manual():
    listed = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    names = [path for name in DOCUMENTS for path in (f"{name}.md", f"{name}.zh.md") if (ROOT / "docs" / path).is_file()]
    names.append("formulas.json")
    assert [name for name in names if f'"docs/{name}" = "heedful/manual/{name}"' not in listed] == []
