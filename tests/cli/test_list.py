import re
import sys

import pytest

from heedful.cli.list import TOPICS, Description, describe, first_line, run, wrapped
from tests.cli.command import heedful


@pytest.mark.parametrize("topic", TOPICS)
def test_every_table_is_listed_with_descriptions(topic: str):
    done = heedful("list", topic)
    assert (done.code, done.err) == (0, "")
    rows = [line.split("  ", maxsplit=1) for line in done.out.split("\n")[:-1]]
    assert rows
    assert all(len(row) == 2 and row[1].strip() for row in rows), rows


@pytest.mark.parametrize(
    ("topic", "names"),
    [
        ("scores", {"dot", "general", "additive", "scaled_dot", "location", "gaussian"}),
        ("biases", {"alibi", "relative_buckets", "relative_keys"}),
        ("masks", {"padding", "causal", "window", "local_monotonic", "local_predictive", "graph"}),
        ("normalizers", {"softmax", "sparsemax", "sampled", "linear_chain"}),
        ("models", {"transformer", "rnnsearch"}),
        ("presets", {"tiny", "small", "base"}),
        ("metrics", {"bleu", "chrf", "exact_match"}),
        ("kernels", {"sdpa", "window", "plain", "fused_triton", "additive_triton"}),
    ],
)
def test_names(topic: str, names: set[str]):
    listed = {line.split("  ")[0] for line in heedful("list", topic).out.split("\n")}
    assert names <= listed


def test_each_model_names_its_task():
    from heedful.models.table import MODELS

    lines = heedful("list", "models").out.split("\n")
    tasks = {cells[0]: cells[-1] for cells in (re.split(r"  +", line) for line in lines if line.strip())}
    assert tasks.keys() == MODELS.keys()
    assert tasks["bidaf"] == "task: answering"
    assert tasks["show_attend_tell"] == "task: captioning"
    assert set(tasks.values()) == {
        f"task: {each}" for each in ("answering", "captioning", "classification", "translation")
    }


def test_a_misspelt_table():
    done = heedful("list", "score")
    assert (done.code, done.out) == (2, "")
    assert done.errors == ["heedful: error: list: no table 'score'; did you mean 'scores'?"]


def test_the_first_paragraph_is_the_description():
    def documented() -> None:
        """One
        line.

        More.
        """

    assert first_line(documented) == "One line."
    assert first_line(lambda: None) == ""


def test_a_mechanism_is_listed_with_formula_source_cost_memory_and_kernels():
    lines = heedful("list", "scores").out.split("\n")
    (cells,) = [re.split(r"  +", line) for line in lines if line.startswith("scaled_dot ")]
    assert cells == [
        "scaled_dot",
        "a(q, k) = q . k / sqrt(depth)",
        "Vaswani et al. 2017, arXiv:1706.03762, eq. 1",
        "cost: depth multiply-adds per pair; memory: query + key; kernels: window, step_cpu, sdpa, plain",
    ]
    (uniform,) = [re.split(r"  +", line) for line in lines if line.startswith("uniform ")]
    assert uniform[2] == "-"


def test_every_kernel_says_what_it_is():
    rows = [re.split(r"  +", line) for line in heedful("list", "kernels").out.split("\n")[:-1]]
    assert len({row[1] for row in rows}) == len(rows)
    assert all(len(row) == 3 and row[2].startswith("memory: query") for row in rows)


ROWS = [("dot", "a(q, k) = q . k", "Luong et al. 2015, section 3.1"), ("general", "a(q, k) = q W k", "")]


def test_rows_are_wrapped_beside_the_names():
    assert wrapped(ROWS, 49).split("\n") == [
        "dot      a(q, k) = q . k",
        "         Luong et al. 2015, section 3.1",
        "general  a(q, k) = q W k",
    ]
    assert wrapped([("dot", "word " * 30)], 50).split("\n")[1:] == [" " * 5 + " ".join(["word"] * 9)] * 2 + [
        " " * 5 + " ".join(["word"] * 3)
    ]


def test_rows_are_wrapped_below_the_names_where_it_is_narrow():
    assert wrapped(ROWS, 30).split("\n") == [
        "dot",
        "    a(q, k) = q . k",
        "    Luong et al. 2015, section",
        "    3.1",
        "general",
        "    a(q, k) = q W k",
    ]
    assert max(map(len, wrapped([("dot", "x" * 9)], 1).split("\n"))) == 13


def test_a_terminal_gets_wrapped_rows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "90")
    run("scores")
    lines = capsys.readouterr().out.split("\n")
    assert max(map(len, lines)) <= 90
    assert lines[1].strip() == "Luong et al. 2015, arXiv:1508.04025, section 3.1, dot"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f = x. Kim et al. 2017, eq. 3.", ("f = x", "Kim et al. 2017, eq. 3", "")),
        (
            "f = x . y. `a` is b.\n\nSee how. Luong 2015,\narXiv:1508.04025. More.",
            ("f = x . y. `a` is b", "Luong 2015, arXiv:1508.04025", ""),
        ),
        ("f = x.\n\nCost: one\n2017 sums.\n\nExample:\n    y. Kim 2017.", ("f = x", "", "one 2017 sums")),
        ("Do it.\n\nArgs:\n    x: of Kim 2017.\n\nReturns:\n    y.\n\nCost: a lot.", ("Do it", "", "a lot")),
        ("Of 12015 things, 20151 or x2015.", ("Of 12015 things, 20151 or x2015", "", "")),
        ("", ("", "", "")),
    ],
)
def test_docstrings_are_read(text: str, expected: tuple[str, str, str]):
    def documented() -> None: ...

    documented.__doc__ = text
    assert describe(documented) == Description(*expected)


def test_a_description_is_never_that_of_a_base():
    """As under `python -OO`, where classes of our own have none."""

    class Base:
        """Base of others."""

    class Bare(Base):
        pass

    assert (first_line(Base), first_line(Bare), describe(Bare).formula) == ("Base of others.", "", "")
