import json

import pytest

from heedful.predictors.table import load
from heedful.search.config import SearchConfig, with_outputs
from tests.cli.command import heedful
from tests.cli.conftest import Trained

TEXTS = ("abc", "fed", "deface")


def outputs(trained: Trained, *options: object) -> list[list[str]]:
    done = heedful("translate", trained.model, "--format", "jsonl", *options, *TEXTS)
    assert done.code == 0, done.err
    records = [json.loads(line) for line in done.out.split("\n")[:-1]]
    return [[other["text"] for other in record["alternatives"]] for record in records]


def by_python(trained: Trained, nbest: int, **settings: object) -> list[list[str]]:
    limits = {"max_length_ratio": 1.0, "max_length_offset": 4}
    config = with_outputs(SearchConfig(**{**limits, **settings}), 0, nbest)  # type: ignore[arg-type]
    found = load(trained.model).translate(TEXTS, nbest=nbest, search=config)
    return [[other.text for other in one.alternatives] for one in found]


@pytest.mark.parametrize(
    ("options", "nbest", "settings"),
    [
        (["--sample"], 1, {"method": "sampling", "beam": 1}),
        (["--temperature", 0.5, "--nbest", 3], 3, {"method": "sampling", "beam": 1, "temperature": 0.5}),
        (["--top-k", 2, "--seed", 7], 1, {"method": "sampling", "beam": 1, "top_k": 2, "seed": 7}),
        (["--top-p", 0.6], 1, {"method": "sampling", "beam": 1, "top_p": 0.6}),
        (["--min-p", 0.4, "--beam", 1], 1, {"method": "sampling", "beam": 1, "min_p": 0.4}),
        (["--groups", 2, "--nbest", 4], 4, {"beam": 2, "num_groups": 2, "diversity": 0.5}),
        (["--groups", 3], 1, {"beam": 3, "num_groups": 3, "diversity": 0.5}),
        (["--diversity", 2.0, "--beam", 4], 1, {"beam": 4, "num_groups": 4, "diversity": 2.0}),
        (["--groups", 1], 1, {"beam": 2}),
        (["--beam", 5, "--groups", 3], 1, {"beam": 6, "num_groups": 3, "diversity": 0.5}),
    ],
)
def test_options_are_settings_of_the_search(
    trained: Trained, options: list[object], nbest: int, settings: dict[str, object]
):
    assert outputs(trained, *options) == by_python(trained, nbest, **settings)


def test_samples_depend_on_the_seed_and_on_nothing_else(trained: Trained):
    one = outputs(trained, "--sample", "--nbest", 4, "--seed", 1)
    assert outputs(trained, "--sample", "--nbest", 4, "--seed", 1, "--batch-tokens", 1) == one
    assert outputs(trained, "--sample", "--nbest", 4, "--seed", 2) != one


def test_outputs_hold_what_is_asked(trained: Trained):
    free = outputs(trained)
    for found in outputs(trained, "--prefix", "FA"):
        assert found[0].startswith("FA")
    for found in outputs(trained, "--require", "CD", "--require", "B"):
        assert "CD" in found[0]
        assert "B" in found[0]
    letter = free[0][0][0]
    for found in outputs(trained, "--ban", letter, "--nbest", 3):
        assert all(letter not in text for text in found)
    other = "A" if letter != "A" else "B"
    for found in outputs(trained, "--ban", letter, "--prefix", other, "--require", other * 2):
        assert found[0].startswith(other)
        assert other * 2 in found[0]
        assert letter not in found[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beam", 4, "--top-k", 3], "method sampling carries no beam"),
        (["--sample", "--groups", 2], "num_groups and diversity are for method beam"),
        (["--top-p", 0], "search.top_p"),
        (["--sample", "--require", "A"], "sampling cannot guarantee a phrase"),
        (["--require", "A", "--ban", "A"], "'A' contains 'A', which is banned"),
        (["--prefix", "Ä"], "prefix 'Ä': the model's vocabulary has no token"),
        (["--replace-unknown"], "replace_unknown: outputs of this model are characters, not words"),
    ],
)
def test_what_does_not_go_together_is_told_in_one_line(trained: Trained, options: list[object], message: str):
    done = heedful("translate", trained.model, *options, "abc")
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert message in done.errors[0]


def test_the_help_has_a_panel_for_each_kind_of_option():
    shown = heedful("translate", "--help").out
    for panel in ("Search", "Constraints on outputs", "Sampling instead of search", "Common options"):
        assert f"\n{panel}:\n" in shown
