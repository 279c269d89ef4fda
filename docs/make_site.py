"""Build the site from the documents: `make docs`, or `python docs/make_site.py --out build/site`.

The site is two builds of mkdocs-material with the same addresses, English in the folder itself and Chinese in `zh`. It
loads nothing from elsewhere and opens from disk. Documents that have no translation are in both.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import site_course
import site_reference
from site_pages import (
    LONGEST,
    ROOT,
    Document,
    Page,
    addresses,
    is_to_be_cut,
    navigation,
    pages_of,
    rendered,
    walk,
)

NOTICES: Final = {"en": "", "zh": "本页只有英文。"}
LEADS: Final = {"en": "In this part:", "zh": "本部分包括："}
"""Line above the list of the pages below a page."""
CHINESE_TITLES: Final[dict[str, str]] = json.loads((ROOT / "docs/site/titles.zh.json").read_text(encoding="utf-8"))
"""Titles in the Chinese navigation of pages that are in English only."""


class Part(NamedTuple):
    """Tab of the site."""

    titles: tuple[str, str]
    """In English and Chinese."""
    documents: Sequence[tuple[str, str, int | None]]
    """Document, address, and the longest section that stays whole."""
    made: Sequence[Callable[[], Page]] = ()
    """Pages made from the code."""


PARTS: Final = (
    Part(("Start", "入门"), [("docs/start.md", "index", None)]),
    Part(
        ("Guide", "指南"),
        [
            ("docs/guide.md", "guide/index", 6_000),
            ("docs/page.md", "guide/page", None),
            ("docs/serve.md", "guide/serve", None),
            ("docs/engines.md", "guide/engines", None),
        ],
    ),
    Part(("Attention", "注意力"), [("docs/attention.md", "attention/index", LONGEST)]),
    Part(
        ("Reference", "参考"),
        [
            ("docs/settings.md", "reference/settings/index", LONGEST),
            ("docs/extending.md", "reference/extending/index", LONGEST),
        ],
        [site_reference.commands, site_reference.python, site_reference.http, site_reference.formats],
    ),
    Part(
        ("Behind", "幕后"),
        [
            ("docs/results.md", "behind/results/index", LONGEST),
            ("docs/performance.md", "behind/performance/index", 6_000),
            ("docs/reliability.md", "behind/reliability/index", 6_000),
            ("docs/log.md", "behind/log/index", LONGEST),
            ("CHANGELOG.md", "behind/changelog/index", LONGEST),
            ("CONTRIBUTING.md", "behind/contributing", None),
        ],
    ),
)
DECISIONS: Final = "docs/decisions"


def document(source: str, address: str, longest: int | None, language: str) -> tuple[Document, str]:
    """Read a document in a language, or in English where it has no translation; and the English text."""
    english = (ROOT / source).read_bytes().decode("utf-8")
    translated = (ROOT / source).with_suffix(".zh.md")
    is_translated = language == "en" or translated.is_file()
    text = translated.read_bytes().decode("utf-8") if language == "zh" and is_translated else english
    return Document(source, address, text, is_translated, longest), english


def pages_below(source: str) -> list[str]:
    """Names of the documents in the folder named like a document, in the order of its links."""
    folder = Path(source).stem
    text = (ROOT / source).read_bytes().decode("utf-8")
    return list(dict.fromkeys(re.findall(rf"\]\({folder}/([\w-]+)\.md[)#]", text)))


def with_pages_below(source: str, address: str, longest: int | None, language: str) -> Page:
    """Page of a document, with those of the folder named like it; what is too long or has several tables is cut."""
    if not (ROOT / source).with_suffix("").is_dir():
        return pages_of(*document(source, address, longest, language))
    page = pages_of(*document(source, address, None, language))
    page.lists_children = True
    for name in pages_below(source):
        path = f"{source.removesuffix('.md')}/{name}.md"
        below = f"{address.removesuffix('/index')}/{name}"
        made, english = document(path, below, None, language)
        if is_to_be_cut(english, longest, tables=1):
            made.address, made.longest, made.tables = f"{below}/index", longest, 1
        page.children.append(pages_of(made, english))
    return page


def decisions(language: str) -> Page:
    """Page of all decisions, with a page each."""
    pages: list[Page] = []
    for path in sorted((ROOT / DECISIONS).glob("*.md")):
        made, english = document(f"{DECISIONS}/{path.name}", f"behind/decisions/{path.stem}", None, language)
        made.is_translated = language == "en"
        pages.append(pages_of(made, english))
    first = Document("", "behind/decisions/index", "# Decisions\n\nWhy things are as they are.\n", language == "en")
    return Page(first, first.address, "Decisions", first.text, pages)


def parts(language: str) -> list[Page]:
    """Whole site in a language: a page for each tab, with all others below."""
    number = ("en", "zh").index(language)
    tabs: list[Page] = []
    for part in PARTS:
        pages = [with_pages_below(*entry, language) for entry in part.documents]
        if part is PARTS[2]:
            pages = [*site_course.pages(language), *pages]
        for make in part.made:
            page = make()
            for each in walk([page]):
                each.document.is_translated = language == "en"
            pages.append(page)
        if part is PARTS[-1]:
            pages.insert(3, decisions(language))
        if pages[0].address.count("/") == 1:
            pages[0].beside = pages[1:]  # the front page of a tab lists all others
        for page in walk(pages):
            page.title = CHINESE_TITLES.get(page.title, page.title) if language == "zh" else page.title
        tabs.append(Page(pages[0].document, pages[0].address, part.titles[number], "", pages))
    return tabs


def write_sources(folder: Path, language: str) -> list[dict[str, object]]:
    """Write the pages and pictures of a language.

    Args:
        folder: to fill.
        language: of the site.

    Returns:
        The navigation.
    """
    tabs = parts(language)
    first = [page for tab in tabs for page in tab.children]
    where = addresses(first)
    pictures: set[str] = set()
    for page in walk(first):
        path = folder / f"{page.address}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        notice = "" if page.document.is_translated else NOTICES[language]
        path.write_bytes(rendered(page, where, pictures, notice, LEADS[language]).encode("utf-8"))
    for picture in pictures:
        (folder / "pictures").mkdir(exist_ok=True)
        shutil.copy(ROOT / picture, folder / "pictures")
    site_course.copy_files(folder, language)
    shutil.copytree(ROOT / "docs/site/assets", folder / "assets", dirs_exist_ok=True)
    return [{tab.title: navigation(tab.children)} for tab in tabs]


def configuration(folder: Path, out: Path, language: str, nav: list[dict[str, object]]) -> str:
    """Write the configuration of the generator, in JSON, which is YAML."""
    base = json.loads((ROOT / "docs/site/mkdocs.json").read_text(encoding="utf-8"))
    base |= {"docs_dir": str(folder), "site_dir": str(out), "nav": nav, "site_name": "heedful"}
    base["theme"] |= {"language": language, "custom_dir": str(ROOT / "docs/site/overrides")}
    base["hooks"] = [str(ROOT / "docs/site/hooks.py")]
    base["extra"]["language"] = language
    handler = base["plugins"]["mkdocstrings"]["handlers"]["python"]
    handler["paths"] = [str(ROOT / "src")]
    handler["options"]["extensions"] = [str(ROOT / "docs/site/docstrings.py")]
    return json.dumps(base, ensure_ascii=False, indent=1)


def build(out: Path, work: Path, languages: Iterable[str]) -> None:
    """Build the site.

    Args:
        out: folder of the site, replaced.
        work: folder of what the generator reads.
        languages: "en", "zh".

    Raises:
        ModuleNotFoundError: the package that cuts Chinese into words is missing.
        subprocess.CalledProcessError: the generator refused a page or a link.
    """
    if find_spec("jieba") is None:  # without it the generator goes on, and the Chinese search finds nothing
        raise ModuleNotFoundError("jieba, which the Chinese search needs: pip install '.[docs]'")
    for language in languages:
        folder = work / language
        shutil.rmtree(folder, ignore_errors=True)
        nav = write_sources(folder, language)
        site = out if language == "en" else out / language
        config = work / f"{language}.yml"
        config.write_text(configuration(folder, site, language, nav), encoding="utf-8")
        command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(config)]
        subprocess.run(command, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site as the arguments say.

    Returns:
        The exit code: 0.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build/site")
    parser.add_argument("--work", type=Path, default=ROOT / "build/site-sources")
    parser.add_argument("--language", choices=("en", "zh"), action="append")
    parser.add_argument("--fresh", action="store_true", help="run every lesson again")
    options = parser.parse_args(arguments)
    site_course.make(options.work / "course", is_fresh=options.fresh)
    build(options.out.resolve(), options.work.resolve(), options.language or ("en", "zh"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
