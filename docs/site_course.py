"""Course of the site: lessons are programs with text in two languages, run once and shown as notebooks and pages.

A lesson is a file `course/NN_name.py` in the percent format of jupytext. Its cells of text come in pairs, English and
Chinese; code and its results are the same in both. A cell that draws has the name of its picture and words for those
who do not see it.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any, Final, NamedTuple

import course_names
import jupytext
import nbformat
import site_reference
from nbclient import NotebookClient
from site_pages import ROOT, Document, Page, title_of

FOLDER: Final = ROOT / "docs/course"
CONCEPTS: Final = FOLDER / "concepts.tsv"
ADDRESS: Final = "attention/course"
LEARN: Final = "bahdanau-page.html#view=learn&"
"""View in which a reader computes attention of own numbers, for lessons without a page of a model of their own."""
MECHANISMS: Final = {
    "averages": "score=gaussian&",
    "scores": "score=additive&",
    "bottleneck": "score=uniform&",
    "luong": "score=general&window=gaussian&",
    "hard": "score=dot&normalizer=sampled&",
    "selfattention": "score=scaled_dot&",
}
"""Mechanism with which the view opens in a lesson."""
NONE: Final = "-"
"""Mark of a concept without code or picture."""
REMARKS: Final = (("no answer yet", "还没有答案"), ("right", "正确"))
"""Remarks of `heedful.course.check` that lessons print, in both languages; a page shows its own."""
_CACHE: dict[str, Any] = {}
"""Lessons with their results, by name."""
_SETUP: Final = """%matplotlib inline
%config InlineBackend.figure_format = "svg"
import matplotlib
matplotlib.rcParams.update({
    "figure.figsize": (7.2, 2.9), "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
    "svg.hashsalt": "heedful", "axes.prop_cycle": matplotlib.cycler(color=["#2f7fd1", "#c26410", "#168f55", "#757a82"]),
    "image.cmap": "Blues", "figure.constrained_layout.use": True, "svg.fonttype": "none",
})"""


class Concept(NamedTuple):
    """Concept of the notes, and what carries it."""

    note: str
    chinese: str
    """Term of the note."""
    english: str
    lesson: str
    code: str
    """Name that the lesson's code uses, as `course_names` writes it."""
    picture: str
    """Name of a cell of the lesson."""


def lesson_files() -> list[Path]:
    """Sources of the lessons, in order."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.py"))


def name_of(path: Path) -> str:
    """Name of a lesson without its number."""
    return path.stem.partition("_")[2]


def read(path: Path) -> Any:
    """Read a lesson as a notebook with cells of both languages."""
    return jupytext.read(path, fmt="py:percent")


def concepts() -> list[Concept]:
    """Read the table of all concepts."""
    lines = CONCEPTS.read_text(encoding="utf-8").strip().split("\n")
    return [Concept(*line.split("\t")) for line in lines[1:]]


def make(work: Path, is_fresh: bool = False) -> None:
    """Run the lessons whose text or whose code below them changed since the last run.

    Args:
        work: folder that keeps the results.
        is_fresh: run all.
    """
    work.mkdir(parents=True, exist_ok=True)
    sources = [*(ROOT / "src/heedful").rglob("*.py"), *(ROOT / "src/heedful/pages/app").glob("*.*")]
    code = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources)))
    for path in lesson_files():
        digest = hashlib.sha256(path.read_bytes() + code.digest() + _SETUP.encode()).hexdigest()[:16]
        kept = work / f"{name_of(path)}-{digest}.ipynb"
        if is_fresh or not kept.is_file():
            for old in work.glob(f"{name_of(path)}-*.ipynb"):
                old.unlink()
            notebook = read(path)
            notebook.cells.insert(0, nbformat.v4.new_code_cell(_SETUP))
            notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
            NotebookClient(notebook, timeout=1200, resources={"metadata": {"path": str(work)}}).execute()
            del notebook.cells[0]
            for cell in notebook.cells:
                cell.get("metadata", {}).pop("execution", None)
            nbformat.write(notebook, kept)
        _CACHE[name_of(path)] = nbformat.read(kept, as_version=4)


def in_language(notebook: Any, language: str) -> list[Any]:
    """Cells of one language: its text, and all code."""
    return [cell for cell in notebook.cells if cell.cell_type == "code" or cell.metadata.get("lang") == language]


def title_of_lesson(path: Path, language: str) -> str:
    """First heading of a lesson in a language."""
    texts = (cell.source for cell in in_language(read(path), language) if cell.cell_type == "markdown")
    return title_of(next(texts))


def pages(language: str) -> list[Page]:
    """Pages of the course: an overview, a page a lesson, the table of concepts."""
    if not _CACHE:
        return []
    source = "docs/course/README.md" if language == "en" else "docs/course/README.zh.md"
    text = (ROOT / source).read_text(encoding="utf-8")
    first = Document("docs/course/README.md", f"{ADDRESS}/index", text, longest=None)
    page = Page(first, first.address, "Course" if language == "en" else "课程", text)
    for name, notebook in _CACHE.items():
        document = Document(
            f"docs/course/{name}.md", f"{ADDRESS}/{name}", as_markdown(name, notebook, language), True, None
        )
        title = document.text.partition("\n")[0].removeprefix("# ")
        page.children.append(Page(document, document.address, title, document.text))
    table = Document("docs/course/concepts.md", f"{ADDRESS}/concepts", concept_table(language), True, None)
    page.children.append(Page(table, table.address, "Concepts" if language == "en" else "概念表", table.text))
    return [page]


def copy_files(folder: Path, language: str) -> None:
    """Write notebooks and pictures beside the pages.

    Args:
        folder: of the site's sources.
        language: of the notebooks.
    """
    target = folder / ADDRESS
    target.mkdir(parents=True, exist_ok=True)
    for name, notebook in _CACHE.items():
        own = nbformat.v4.new_notebook(cells=in_language(notebook, language), metadata=notebook.metadata)
        nbformat.write(own, target / f"{name}.ipynb")
        for cell in notebook.cells:
            for picture in _pictures(cell):
                (target / f"{name}-{cell.metadata['picture']}.svg").write_text(picture, encoding="utf-8")
            for page in _pages(cell):
                (target / f"{name}-{cell.metadata['page']}.html").write_text(page, encoding="utf-8")


def _pictures(cell: Any) -> Sequence[str]:
    outputs = cell.get("outputs", ())
    return [out["data"]["image/svg+xml"] for out in outputs if "image/svg+xml" in out.get("data", {})]


def _pages(cell: Any) -> Sequence[str]:
    """Offline pages that a cell shows in a frame."""
    drawn = (out.get("data", {}).get("text/html", "") for out in cell.get("outputs", ()))
    frames = (re.search(r'<iframe srcdoc="([^"]*)"', html) for html in drawn)
    return [unescape(frame[1]) for frame in frames if frame]


def as_markdown(name: str, notebook: Any, language: str) -> str:
    """Write a lesson with its results, and links to a page to play with and to the notebook below its title."""
    words = {
        "en": ("Notebook", "Try it with your own numbers", "Look at the attention of a model"),
        "zh": ("笔记本", "用自己的数字试一试", "看看一个模型的注意力"),
    }[language]
    own = [cell for cell in notebook.cells if "page" in cell.metadata]
    address, label = (_address(name, own[-1]), words[2]) if own else (LEARN + MECHANISMS.get(name, ""), words[1])
    parts: list[str] = []
    number = -1
    for cell in in_language(notebook, language):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            if len(parts) == 1:
                title, _, rest = cell.source.partition("\n")
                play = f'<a href="{address}language={language}">{label}</a>'
                links = f'{play} · <a href="{name}.ipynb" download>{words[0]}</a>'
                parts = [f'{title}\n\n<div class="beside">{links}</div>\n\n{rest}']
            continue
        number += 1
        parts.append(f'<div id="code-{number}"></div>\n\n```python\n{cell.source}\n```')
        text = "".join(map(_text, cell.outputs)).rstrip()
        for remark in REMARKS:
            text = text.replace(" ".join(remark), remark[language == "zh"])
        if text:
            parts.append(f'<div class="output" markdown>\n\n```text\n{text}\n```\n\n</div>')
        if _pictures(cell):
            alt = cell.metadata["alt" if language == "en" else "alt_zh"]
            parts.append(f'<img class="drawn" alt="{alt}" src="{name}-{cell.metadata["picture"]}.svg">')
        if _pages(cell):
            alt = cell.metadata["alt" if language == "en" else "alt_zh"]
            framed = f"{_address(name, cell)}language={language}"
            parts.append(f'<iframe class="page" loading="lazy" title="{alt}" src="{framed}"></iframe>')
    return "\n\n".join(parts) + "\n"


def _address(name: str, cell: Any) -> str:
    """Address of the page of a cell, up to the language; the cell may name the view that opens."""
    view = f"view={cell.metadata['view']}&" if "view" in cell.metadata else ""
    return f"{name}-{cell.metadata['page']}.html#{view}"


def _text(output: Mapping[str, Any]) -> str:
    if output["output_type"] == "stream":
        return output["text"]
    data = output.get("data", {})
    return "" if data.keys() & {"image/svg+xml", "text/html"} else data.get("text/plain", "") + "\n"


def concept_table(language: str) -> str:
    """Page of all concepts of the notes with lesson, code and picture.

    Args:
        language: "en" or "zh".

    Returns:
        Markdown.
    """
    if language == "en":
        head = (
            "# Concepts\n\nEvery concept of the five [lecture notes](README.md), with the number of its lesson, code "
            "of that lesson and picture. A dash stands where there is nothing to compute or to draw.\n"
        )
        names = ("concept", "in Chinese", "lesson", "code", "picture")
    else:
        head = (
            "# 概念表\n\n五篇[笔记](README.md)里的每个概念：在哪一课讲，那一课的哪段代码用到它，看哪幅图。"
            "没有可算或可画的，用短横表示。\n"
        )
        names = ("概念", "英文", "课", "代码", "图")
    lessons = {name_of(path): title_of_lesson(path, language) for path in lesson_files()}
    titles = {"en": ("Notes {}",), "zh": ("笔记 {}",)}[language]
    lines = [head]
    last = ""
    for concept in concepts():
        if concept.note != last:
            last = concept.note
            lines += [f"\n## {titles[0].format(last)}\n", f"| {' | '.join(names)} |", "| --- " * len(names) + "|"]
        pair = (concept.english, concept.chinese) if language == "en" else (concept.chinese, concept.english)
        label = concept.picture if language == "en" else "看图"
        picture = f'<a href="{concept.lesson}-{concept.picture}.svg">{label}</a>'
        cells = (
            *pair,
            f'[{lessons[concept.lesson].partition(" ")[0]}]({concept.lesson}.md "{lessons[concept.lesson]}")',
            NONE if concept.code == NONE else _linked(concept),
            NONE if concept.picture == NONE else picture,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _linked(concept: Concept) -> str:
    """Code as a link: to the reference, which the generator resolves, or to the lesson's cell that uses the name."""
    name = concept.code.partition("(")[0]
    if name in _public():
        return f"[`{concept.code}`][{name}]"
    (path,) = (path for path in lesson_files() if name_of(path) == concept.lesson)
    return f"[`{concept.code}`]({concept.lesson}.md#code-{course_names.used_names(path)[concept.code]})"


@cache
def _public() -> set[str]:
    """Names that the reference has."""
    modules = (*site_reference.PUBLIC, *site_reference.PARTS)
    return {f"{module}.{name}" for module in modules for name in site_reference.public_names(module)}
