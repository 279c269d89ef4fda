"""Every command and line of Python in the README, the guide and the page on attention works, in both languages."""

import ast
import json
import re
import runpy
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.cli.main import COMMANDS, main
from tests.architecture.package import ROOT

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = ("README", "docs/guide", "docs/attention")
FIRST_PAGES = ("README", "docs/guide")  # in the order of reading
LANGUAGES = ("", ".zh")
# Enough for a model to be kept, far too little for a good one.
SIZES = ("embedding_size", "hidden_size", "alignment_size", "maxout_size")
SHORT = {
    **{f"model.{size}": 16 for size in SIZES},
    **{"training.max_steps": 4, "training.validate_every": 2, "training.batch_tokens": 256, "training.export": False},
}
SET = [word for key, value in SHORT.items() for word in ("--set", f"{key}={json.dumps(value)}")]


def page(name: str) -> str:
    return (ROOT / f"{name}.md").read_bytes().decode("utf-8")


def blocks(text: str, *kinds: str) -> list[str]:
    """The code of a page, block by block."""
    return [code for kind, code in FENCE.findall(text) if kind in kinds]


def without_comments(code: str) -> str:
    return "\n".join(re.sub(r"\s+#\s.*$", "", line) for line in code.split("\n"))


def table(text: str, name: str) -> list[list[str]]:
    """The cells of the table that holds a text in its first row below the heading."""
    rows = [line.strip("|").split("|") for line in text.split("\n") if line.startswith("|")]
    starts = [place for place, row in enumerate(rows) if set("".join(row)) <= set("-|")]
    for start, stop in zip(starts, [*(place - 1 for place in starts[1:]), len(rows)], strict=True):
        if name in rows[start + 1][0]:
            return [[cell.strip() for cell in row] for row in rows[start + 1 : stop]]
    raise ValueError(f"no table that begins with {name}")


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_show_the_same_code(name: str):
    kinds = ("python", "sh", "bat")
    english, chinese = (blocks(page(name + language), *kinds) for language in LANGUAGES)
    assert [without_comments(code) for code in english] == [without_comments(code) for code in chinese]
    assert english


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_have_the_same_sections_links_and_inline_code(name: str):
    texts = [FENCE.sub("", page(name + language)) for language in LANGUAGES]
    depths = [re.findall(r"^(#+) ", text, re.MULTILINE) for text in texts]
    assert depths[0] == depths[1]
    codes = [set(re.findall(r"`([^`\n]+)`", re.sub(r"\s*\n\s*", " ", text))) for text in texts]
    assert codes[0] == codes[1]
    papers = [re.findall(r"\((https://[^)]+|src/[^)]+|\.\./src/[^)]+)\)", text) for text in texts]
    assert sorted(papers[0]) == sorted(papers[1])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_readme_is_short(language: str):
    assert len(page(f"README{language}").encode("utf-8")) <= 15_000


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_of_commands_names_every_command_and_no_other(language: str):
    commands = [cells[0].strip("`").split()[1] for cells in table(page(f"README{language}"), "heedful demo")]
    assert sorted(commands) == sorted(COMMANDS)


def test_results_are_the_same_in_both_languages():
    english, chinese = (
        [cells[-2:] for cells in table(page(f"README{language}"), first)]
        for language, first in (("", "demo: dates"), (".zh", "演示："))
    )
    assert [row[0].replace("尚未测量", "not measured yet") for row in chinese] == [row[0] for row in english]


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples and a few pairs in it, where training is over in a moment."""
    from heedful.runs.api import train_model

    def train_briefly(*data: str, settings: Mapping[str, Any] | None = None, **options: Any) -> object:
        return train_model(*data, settings={**(settings or {}), **SHORT}, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(heedful, "train", train_briefly, raising=False)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    grid = tmp_path / "examples" / "compare_attention.toml"  # two rows of it; test_examples.py reads them all
    grid.write_bytes(b"[[rows]]".join(grid.read_bytes().split(b"[[rows]]")[:3]))
    runpy.run_path(str(ROOT / "examples" / "write_pairs.py"))["main"](num_pairs=200)
    return tmp_path


def test_the_commands_work_in_order(newcomer: Path, capfd: pytest.CaptureFixture[str]):
    lines = [line for name in FIRST_PAGES for code in blocks(page(name), "sh") for line in code.split("\n")]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("heedful ")]
    assert [words[0] for words in commands] == ["demo", "train", "translate", "evaluate", "info", "check", "compare"]
    shorter = {"train": SET, "compare": ["--minutes-per-run", "0.0001"]}
    for words in commands[1:]:  # the demo has a test of its own
        assert main([*words, *shorter.get(words[0], [])]) == 0, (words, capfd.readouterr().err)
        assert capfd.readouterr().out, words
    assert (newcomer / "pairs.model" / "heedful.json").is_file()
    assert "not run" not in (newcomer / "compare_attention.compare" / "table.md").read_bytes().decode("utf-8")


def test_the_python_of_the_readme_and_the_guide_works_in_order(newcomer: Path, capsys: pytest.CaptureFixture[str]):
    names: dict[str, Any] = {}
    for name in FIRST_PAGES:
        for code in blocks(page(name), "python"):
            exec(compile(code, f"{name}.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "exact match" in shown
    assert "torch.Size([2, 7, 96]) torch.Size([2, 7, 11])" in shown
    assert "score [1, 11, 16]" in shown
    assert names["near"].context.shape == (2, 11, 96)
    assert (newcomer / "attention.png").is_file()


SHAPE = re.compile(r"(?<!in )\[(\w+(?:, \w+)*)\]")


def run_page(text: str) -> list[tuple[str, Any]]:
    """Run the code of a page from top to bottom; the comment behind each statement, and the value that it speaks of."""
    names: dict[str, Any] = {}
    given: list[tuple[str, Any]] = []
    for code in blocks(text, "python"):
        lines = code.split("\n")
        for node in ast.parse(code).body:
            source = ast.get_source_segment(code, node) or ""
            if isinstance(node, ast.Expr):
                value = eval(source, names)
            else:
                exec(source, names)
                value = eval(ast.unparse(node.targets[0]), names) if isinstance(node, ast.Assign) else None
            comment = lines[(node.end_lineno or 0) - 1].partition("  # ")[2]
            if comment:
                given.append((comment, value))
    return given


def fits(comment: str, value: Any) -> bool:
    """Whether values have the shapes that a comment gives; a word stands for any size, and what is left out is free."""
    shapes = [found[1].split(", ") for found in SHAPE.finditer(comment)]
    values = value if isinstance(value, tuple) else (value,)
    pairs = [(shapes[0], each) for each in values] if "each" in comment else [*zip(shapes, values, strict=False)]
    return all(
        len(shape) == each.dim()
        and all(word in {str(size), "head"} for word, size in zip(shape, each.shape, strict=True))
        for shape, each in pairs
    )


# What comments say beyond shapes; a comment that is neither here nor in REMARKS fails the test.
CLAIMS: dict[str, Callable[[Any], bool]] = {
    "zeros: average pooling": lambda tensor: float(tensor.abs().max()) < 1e-6,
    "zeros": lambda tensor: tensor.tolist() == [0.0, 0.0, 0.0],
    "[2, 3, 5], rows sum to 1": lambda tensor: float((tensor.sum(-1) - 1).abs().max()) < 1e-6,
    "with zeros": lambda tensor: bool((tensor == 0).any()) and bool((tensor > 0).any()),
    "one-hot": lambda tensor: tensor.unique().tolist() == [0, 1] and tensor.sum(-1).unique().tolist() == [1],
    "each in [0, 1]": lambda tensor: bool(((tensor >= 0) & (tensor <= 1)).all()),
    "row = word, column = head": lambda tensor: (
        float((tensor.sum(-1) - tensor.new_tensor([0, 1, 1, 1, 1])).abs().max()) < 1e-5
    ),
    "[2]: small where the queries look at different keys": lambda tensor: bool((tensor >= 0).all()),
    "depends on the distance only": lambda tensor: all(
        float((tensor.diagonal(distance) - tensor[0, distance]).abs().max()) < 1e-9 for distance in range(60)
    ),
    '"sdpa"': lambda kernel: kernel == "sdpa",
    '"plain"': lambda kernel: kernel == "plain",
}
REMARKS = {
    "y = 2 sin x + x^0.8 + noise, as in Dive into Deep Learning",
    "its log_bandwidth is a parameter",
    "U k, once for a source",
    "at every decoding step",
    "of each item of the batch: say, log p(target)",
    "what to expect next time",
    "score of a state (row) followed by another (column); learn it",
    "each place, its neighbours and itself",
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_the_page_on_attention_works_in_order_and_says_what_its_lines_give(capsys: pytest.CaptureFixture[str]):
    given = run_page(page("docs/attention"))
    comments = {comment for comment, _ in given}
    assert comments >= CLAIMS.keys() | REMARKS
    for comment, value in given:
        if comment in CLAIMS:
            assert CLAIMS[comment](value), comment
        if comment not in REMARKS | CLAIMS.keys():
            assert SHAPE.search(comment), f"what {comment!r} says is not checked"
        if SHAPE.search(comment):
            assert fits(comment, value), comment
    shown = capsys.readouterr().out
    (block,) = re.findall(r"\n((?:    (?:constant|gaussian), h = .*\n)+)", page("docs/attention"))
    assert shown.startswith(re.sub("^    ", "", block, flags=re.MULTILINE))
    assert block in page("docs/attention.zh")
    assert "\nsdpa: gives the context only, not weights\n" in shown
    assert "\nplain: can\n" in shown


@pytest.mark.parametrize(
    ("comment", "shape", "is_right"),
    [
        ("[2, 3]", (2, 3), True),
        ("[2, 3]", (3, 2), False),
        ("[2, 3]", (2, 3, 1), False),
        ("self: [2, 3]", (2, 3), True),
        ("[head, 3]", (7, 3), True),
    ],
)
def test_shapes_in_comments_are_compared(comment: str, shape: tuple[int, ...], is_right: bool):
    torch = pytest.importorskip("torch")
    assert fits(comment, torch.zeros(shape)) == is_right
    assert fits(f"each {comment}", (torch.zeros(shape), torch.zeros(shape))) == is_right


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_mechanism_of_the_tables_is_in_the_code_of_the_page(language: str):
    from heedful.attention.masks import MASKS
    from heedful.attention.normalizers import NORMALIZERS
    from heedful.attention.scores import SCORES

    code = "\n".join(blocks(page(f"docs/attention{language}"), "python"))
    names = [*(kind.__name__ for kind in (*SCORES.values(), *NORMALIZERS.values())), *MASKS]
    assert {"Additive", "Softmax", "padding"} <= set(names)
    words = re.findall(r"\w+", code)
    # Once in an import, once in use.
    assert [name for name in names if words.count(name) < 2] == []


def test_no_page_names_a_host_for_packages_or_a_path_of_a_machine():
    for path in (*ROOT.glob("README*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.py")):
        text = path.read_bytes().decode("utf-8")
        assert not re.search(r"pypi|index-url|/home/|/root/|/work/|C:\\", text, re.IGNORECASE), path.name
