import pytest

from heedful.cli.list import TOPICS, first_line
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
        ("scores", {"dot", "general", "additive", "scaled_dot"}),
        ("masks", {"padding", "causal", "window"}),
        ("normalizers", {"softmax"}),
        ("models", {"transformer", "rnnsearch"}),
        ("presets", {"tiny", "small", "base"}),
        ("metrics", {"bleu", "chrf", "exact_match"}),
        ("kernels", {"sdpa", "eager"}),
    ],
)
def test_names(topic: str, names: set[str]):
    listed = {line.split("  ")[0] for line in heedful("list", topic).out.split("\n")}
    assert names <= listed


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
