"""Generator of the tables and pictures on the pages about attention: `python docs/make_attention.py`.

Tables stand between <!-- table: name --> and <!-- /table -->; their cells come from docstrings and from `explain`. The
rest of the pages is written by hand.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from attention_chinese import CHINESE
from attention_in_models import model_tables, variants
from attention_pictures import PICTURES
from attention_transforms import transform_tables

from heedful.cli.list import Mechanism, list_biases, list_kernels, list_masks, list_normalizers, list_scores

FOLDER: Final = Path(__file__).resolve().parent
TABLE: Final = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- /table -->)", re.DOTALL)
LINKS: Final = {"arXiv:": "https://arxiv.org/abs/", "doi:": "https://doi.org/"}
SIGNS: Final = (
    (" . ", " · "),
    ("^2", "²"),
    ("^3", "³"),
    (" * ", " × "),
    (" - ", " − "),
    ("-> infinity", "→ ∞"),
    ("->", "→"),
    (" in {", " ∈ {"),
    ("|", r"\|"),
)
"""Signs that docstrings write in ASCII."""
MATHEMATICS: Final = (
    (r"sqrt\((\w+)\)", r"√\1"),
    (r"(^|[\s(\[,])-(?=[\w\\])", r"\1−"),
    (r"\b(\d)\.\.(\w)", r"\1, …, \2"),
    (r"\b(eq\.|式) (\d+)-(\d+)", r"\1 \2–\3"),
)
"""Patterns of such signs: roots, minus before a number, sequences, ranges of equations."""
ENGLISH_WORDS: Final = re.compile(r"\b[a-z]{3,} [a-z]{2,} [a-z]{2,}\b")
"""Pattern of a sentence, which no formula matches."""


class Language(NamedTuple):
    """A page and the words of its tables."""

    page: str
    headings: Mapping[str, Sequence[str]]
    words: Mapping[str, str]
    """English cell -> cell; what is missing stays English."""


PAGES: Final = (
    Language(
        "attention.md",
        {
            "scores": ("score", "a(q, k)", "source", "time", "memory", "kernels"),
            "biases": ("bias", "b(i, j)", "source", "time", "memory", "kernels"),
            "normalizers": ("normalizer", "weights", "source", "time", "memory", "kernels"),
            "masks": ("mask", "effect", "source", "time", "stored as", "kernels"),
            "kernels": ("kernel", "description", "memory beyond inputs and outputs"),
            "transforms": (
                "mechanism",
                "gradients of gradients",
                "`torch.func`: `vmap`, `jacrev`, `hessian`",
                "`torch.compile`, whole",
                "`torch.export`, any numbers of items, queries and keys",
                "ONNX",
            ),
            "models": ("attention", "scores", *variants()),
            "refusals": ("number", "reason for the refusal"),
        },
        {},
    ),
    Language(
        "attention.zh.md",
        {
            "scores": ("打分函数", "a(q, k)", "出处", "时间", "内存", "内核"),
            "biases": ("偏置", "b(i, j)", "出处", "时间", "内存", "内核"),
            "normalizers": ("归一化", "权重", "出处", "时间", "内存", "内核"),
            "masks": ("掩码", "作用", "出处", "时间", "保存为", "内核"),
            "kernels": ("内核", "说明", "输入输出之外的内存"),
            "transforms": (
                "机制",
                "二阶导数",
                "`torch.func`：`vmap`、`jacrev`、`hessian`",
                "`torch.compile`，整图",
                "`torch.export`，样本数、查询数、键数任意",
                "ONNX",
            ),
            "models": ("注意力", "打分函数", *variants()),
            "refusals": ("编号", "拒绝的理由"),
        },
        CHINESE,
    ),
)


def rows_of(mechanisms: Iterable[Mechanism]) -> list[tuple[str, ...]]:
    """Bring mechanisms to rows.

    Args:
        mechanisms: of one table.

    Returns:
        For each the cells in English.
    """
    return [
        (
            f"`{each.kind}`",
            each.formula.removeprefix("a(q, k) = ").removeprefix("b(i, j) = ").removeprefix("weights = "),
            each.source,
            each.cost,
            each.memory,
            ", ".join(each.kernels),
        )
        for each in mechanisms
    ]


def tables() -> dict[str, list[tuple[str, ...]]]:
    """Collect the tables.

    Returns:
        Name -> rows of English cells.
    """
    return {
        "scores": rows_of(list_scores()),
        "biases": rows_of(list_biases()),
        "normalizers": rows_of(list_normalizers()),
        "masks": rows_of(list_masks()),
        "kernels": [(f"`{name}`", what, memory) for name, what, memory in list_kernels()],
        **transform_tables(),
        **model_tables(),
    }


def cell(text: str, words: Mapping[str, str]) -> str:
    """Write a cell in a language, as Markdown.

    Args:
        text: in English.
        words: English cell -> cell; an empty mapping for English itself.

    Returns:
        One line, with links to the papers.
    """
    written = words.get(text, text)
    if words and any(prefix in text for prefix in LINKS):
        written = _chinese_source(written)
    for plain, sign in SIGNS:
        written = written.replace(plain, sign)
    for pattern, sign in MATHEMATICS:
        written = re.sub(pattern, sign, written)
    return re.sub(r"\b(arXiv:|doi:)([\w./]*\w)", lambda found: f"[{found[0]}]({LINKS[found[1]]}{found[2]})", written)


def _chinese_source(source: str) -> str:
    for pattern, words in (
        (r" et al\. ", " 等 "),
        (r", (\w+) and (\w+ \d{4})", r"、\1、\2"),
        (r"(\w+) and (\w+ \d{4})", r"\1、\2"),
        (r"(?<=\w) (\d{4})\b", r"，\1"),
        (r"\bsection ([\d.]*\d)", r"第 \1 节"),
        (r": `LinearChain` without transitions", "：没有转移的 `LinearChain`"),
        (r"\balgorithm (\d)", r"算法 \1"),
        (r"\beq\. ([\d-]+)", r"式 \1"),
        (r"\btable ([\d.]*\d)", r"表 \1"),
        (r" and note (\d+)", r"、注 \1"),
        (r", where query", "，其中 query"),
        (r" and key = ", "，key = "),
        (r"; with a temperature, ", "；带温度的见 "),
        (r"; ", "；"),
        (r", ", "，"),
    ):
        source = re.sub(pattern, words, source)
    return source


def to_markdown(rows: Iterable[Sequence[str]], headings: Sequence[str], words: Mapping[str, str]) -> str:
    """Write a table.

    Args:
        rows: English cells.
        headings: of the columns, in the language.
        words: as for `cell`.

    Returns:
        Lines.
    """
    cells = [[cell(text, words) or "–" for text in row] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in (headings, ["---"] * len(headings), *cells))


def fill(text: str, language: Language) -> str:
    """Put fresh tables into a page.

    Args:
        text: of the page, with all tables marked.
        language: of the page.

    Returns:
        The page as it should be.

    Raises:
        ValueError: a table is not in the page, or the page marks another.
    """
    fresh = tables()
    marked = [found[2] for found in TABLE.finditer(text)]
    if sorted(marked) != sorted(fresh):
        raise ValueError(f"{language.page}: tables marked are {', '.join(marked)}; expected {', '.join(fresh)}")

    def table(found: re.Match[str]) -> str:
        name = found[2]
        return found[1] + to_markdown(fresh[name], language.headings[name], language.words) + found[3]

    return TABLE.sub(table, text)


def untranslated() -> list[str]:
    """Find cells with sentences that have no Chinese wording.

    Returns:
        The English cells.
    """
    cells = {text for rows in tables().values() for row in rows for text in row}
    return sorted(text for text in cells if ENGLISH_WORDS.search(text.partition("arXiv:")[0]) and text not in CHINESE)


def stale() -> list[str]:
    """Find Chinese wordings of cells that are no more.

    Returns:
        Their English cells.
    """
    cells = {text for rows in tables().values() for row in rows for text in row}
    return sorted(set(CHINESE) - cells)


def files() -> dict[Path, str]:
    """Make all that is generated.

    Returns:
        Path -> text as it should be; the pages as they are, with fresh tables.
    """
    found = {
        FOLDER / language.page: fill((FOLDER / language.page).read_bytes().decode("utf-8"), language)
        for language in PAGES
    }
    return found | {FOLDER / "pictures" / f"{name}.svg": draw().to_svg() for name, draw in PICTURES.items()}


def main() -> None:
    """Write what is not as it should be, and say so."""
    (FOLDER / "pictures").mkdir(exist_ok=True)
    for path, text in files().items():
        if not path.exists() or path.read_bytes() != text.encode("utf-8"):
            path.write_text(text, encoding="utf-8", newline="\n")
            print(f"wrote {path.relative_to(FOLDER.parent)}")
    for text in untranslated():
        print(f"docs/attention_chinese.py: no Chinese for: {text}", file=sys.stderr)
    for text in stale():
        print(f"docs/attention_chinese.py: no longer in a table: {text}", file=sys.stderr)


if __name__ == "__main__":
    main()
