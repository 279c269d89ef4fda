"""What the README and the pages for learners tell a newcomer to type works, in both languages alike."""

import inspect
import re
import runpy
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.cli.main import VERBS, main
from tests.architecture.package import ROOT

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = ("README", "docs/attention")
LANGUAGES = ("", ".zh")
# Enough for a model to be kept, far too little for a good one.
SIZES = ("embedding_size", "hidden_size", "alignment_size", "maxout_size")
SHORT = {
    **{f"model.{size}": 16 for size in SIZES},
    **{"training.max_steps": 4, "training.validate_every": 2, "training.batch_tokens": 256},
}
SET = [word for key, value in SHORT.items() for word in ("--set", f"{key}={value}")]


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
def test_the_table_of_verbs_names_every_verb_and_no_other(language: str):
    verbs = [cells[0].strip("`").split()[1] for cells in table(page(f"README{language}"), "heedful demo")]
    assert sorted(verbs) == sorted(VERBS)


def test_results_are_the_same_in_both_languages():
    english, chinese = (
        [cells[-2:] for cells in table(page(f"README{language}"), first)]
        for language, first in (("", "demo: dates"), (".zh", "演示："))
    )
    assert [row[0].replace("尚未测量", "not measured yet") for row in chinese] == [row[0] for row in english]


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples and a few pairs in it, where training is over in a moment."""
    from heedful.recipe import train_model

    def train_briefly(*data: str, settings: Mapping[str, Any] | None = None, **options: Any) -> object:
        return train_model(*data, settings={**(settings or {}), **SHORT}, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(heedful, "train", train_briefly, raising=False)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    runpy.run_path(str(ROOT / "examples" / "write_pairs.py"))["main"](num_pairs=200)
    return tmp_path


def test_the_commands_work_in_order(newcomer: Path, capfd: pytest.CaptureFixture[str]):
    lines = [line for code in blocks(page("README"), "sh") for line in code.split("\n")]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("heedful ")]
    assert [words[0] for words in commands] == ["demo", "train", "translate", "evaluate", "info", "check"]
    for words in commands[1:]:  # the demo has a test of its own
        assert main([*words, *(SET if words[0] == "train" else [])]) == 0, (words, capfd.readouterr().err)
        assert capfd.readouterr().out, words
    assert (newcomer / "pairs.model" / "heedful.json").is_file()


def test_the_python_of_the_readme_works_in_order(newcomer: Path, capsys: pytest.CaptureFixture[str]):
    names: dict[str, Any] = {}
    for code in blocks(page("README"), "python"):
        exec(compile(code, "README.md", "exec"), names)
    shown = capsys.readouterr().out
    assert "exact match" in shown
    assert "torch.Size([2, 7, 96]) torch.Size([2, 7, 11])" in shown
    assert "score [1, 11, 16]" in shown
    assert names["near"].context.shape == (2, 11, 96)
    assert (newcomer / "attention.png").is_file()


def test_the_page_on_attention_works_in_order_and_says_what_its_lines_give(capsys: pytest.CaptureFixture[str]):
    names: dict[str, Any] = {}
    given: dict[str, Any] = {}
    for code in blocks(page("docs/attention"), "python"):
        for line in code.split("\n"):
            statement, _, comment = line.partition("  # ")
            if statement.startswith("attend("):
                given[comment] = eval(statement, names)
            else:
                exec(statement, names)
    assert list(given["[2, 3, 4]"].shape) == [2, 3, 4]
    assert float((given["[2, 3, 5], rows sum to 1"].sum(-1) - 1).abs().max()) < 1e-6
    assert given["0, 0, 0"].tolist() == [0.0, 0.0, 0.0]
    assert bool((given["with zeros"] == 0).any())
    assert list(given["[2, 3]"].shape) == [2, 3]
    assert set(given["one-hot"].flatten().tolist()) == {0.0, 1.0}
    kernels = {comment.split('"')[1]: kernel for comment, kernel in given.items() if comment.startswith('"')}
    assert kernels == {"sdpa": "sdpa", "eager": "eager"}
    assert names["output"].shape == (2, 5, 8)
    assert re.fullmatch(r"bandwidth 0\.\d+, R\^2 on the curve 0\.[89]\d\n", capsys.readouterr().out)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_mechanism_of_the_tables_is_on_the_page(language: str):
    from heedful.attention import masks
    from heedful.attention.normalizers import NORMALIZERS
    from heedful.attention.scores import SCORES

    text = page(f"docs/attention{language}")
    makers = [
        name
        for name, f in inspect.getmembers(masks, inspect.isfunction)
        if inspect.signature(f).return_annotation is masks.Mask
    ]
    names = [*(kind.__name__ for kind in (*SCORES.values(), *NORMALIZERS.values())), *makers]
    assert {"Additive", "Softmax", "padding"} <= set(names)
    assert [name for name in names if f"{name}(" not in text] == []


def test_no_page_names_a_host_for_packages_or_a_path_of_a_machine():
    for path in (*ROOT.glob("README*.md"), *(ROOT / "docs").glob("attention*.md"), *(ROOT / "examples").glob("*.py")):
        text = path.read_bytes().decode("utf-8")
        assert not re.search(r"pypi|index-url|/home/|/root/|/work/|C:\\", text, re.IGNORECASE), path.name
