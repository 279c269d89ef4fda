"""Runs of a grid: one recipe for each row and seed, and the commands that stand for them."""

import json
import math
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from heedful.comparison.evaluation import MEASURES, attention_entropy, bleu_before_unknown
from heedful.comparison.grid import Grid, Row
from heedful.comparison.plan import ComparisonPlan, shell_command
from heedful.comparison.summary import COLUMNS
from heedful.data.prepare import EvaluationSet
from heedful.predictors.translation import Translation
from heedful.search.config import SearchConfig
from tests.requests import make_request

RECIPE = make_request(
    data=(Path("a b.de"), Path("a.en")),
    dev=(Path("v.de"), Path("v.en")),
    out=Path("out"),
    columns=(2, 1),
    languages=("de", "en"),
    device="cpu",
)
ROW = Row("a/b c", "luong", ('model.score="dot"', "training.max_minutes=9", "training.seed=4"))


def test_the_budget_and_the_seed_beat_the_row():
    recipe = ComparisonPlan(Grid(), (ROW,), RECIPE, "", ("training.max_minutes=2.5",)).run(ROW, 7)
    assert recipe.out == Path("out/runs/a-b-c-7")
    assert (recipe.preset, recipe.data, recipe.dev, recipe.columns) == ("luong", RECIPE.data, RECIPE.dev, (2, 1))
    assert recipe.settings == {"model": {"attention": {"score": "dot"}}, "training": {"max_minutes": 2.5, "seed": 7}}


def test_a_command_says_all_that_the_recipe_does():
    plan = ComparisonPlan(Grid(), (ROW,), RECIPE, "")
    recipe = plan.run(ROW, 1)
    words = shlex.split(shell_command(("train",), recipe, ("--out", "x")))
    assert words[:8] == ["heedful", "train", "a b.de", "a.en", "--dev", "v.de", "--dev", "v.en"]
    assert words[8:14] == ["--columns", "2,1", "--languages", "de:en", "--preset", "luong"]
    assert words[-2:] == ["--out", "x"]
    assert "--set" not in shell_command(("compare", "g.toml"), RECIPE, ())
    assert "--preset" not in shell_command(("compare", "g.toml"), recipe, ())


def test_every_measure_has_a_column():
    assert MEASURES.keys() <= {column.key for column in COLUMNS}


def found(text: str, unreplaced: str = "") -> Translation:
    return Translation("", text, 0.0, 0.0, (), unreplaced=unreplaced)


def test_what_replacing_unknown_words_gains_can_be_seen():
    items = EvaluationSet(["a", "b"], [["one two three four Bonn"], ["five six seven eight nine"]])
    outputs = [found("one two three four Bonn", "one two three four <unk>"), found("five six seven eight nine")]
    translator = SimpleNamespace(search=SearchConfig(replace_unknown=True), target_language="en")
    score = bleu_before_unknown(translator, items, outputs)  # type: ignore[arg-type]
    texts = ["one two three four <unk>", "five six seven eight nine"]
    wanted = BLEU().corpus_score(texts, [[each[0] for each in items.references]]).score
    assert score == pytest.approx(wanted)
    assert score < 100.0


def test_a_model_that_replaces_nothing_has_no_such_figure():
    translator = SimpleNamespace(search=SearchConfig(), target_language="en")
    assert bleu_before_unknown(translator, EvaluationSet(["a"], [["b"]]), [found("b")]) is None  # type: ignore[arg-type]


def test_the_entropy_of_weights_is_that_of_alignments_over_references():
    rows = [[0.5, 0.5, 0.0], [0.2, 0.2, 0.0], [0.0, 0.0, 0.0]], [[1.0, 0.0]]
    scored = [SimpleNamespace(attention=np.array(each, dtype=np.float32)) for each in rows]
    asked: list[object] = []

    def scored_pairs(pairs: list[tuple[str, str]], attention: bool) -> list[SimpleNamespace]:
        asked.extend([pairs, attention])
        return scored

    items = EvaluationSet(["a", "b"], [["x", "z"], ["y"]])
    translator = SimpleNamespace(model=lambda: SimpleNamespace(alignment="cross"), scored_pairs=scored_pairs)
    found = attention_entropy(translator, items, [])  # type: ignore[arg-type]
    assert found == pytest.approx(2 * math.log(2) / 3)
    assert asked == [[("a", "x"), ("b", "y")], True]
    without = SimpleNamespace(model=lambda: SimpleNamespace(alignment=""))
    assert attention_entropy(without, items, []) is None  # type: ignore[arg-type]


def test_a_run_is_another_one_where_a_file_of_its_settings_has_changed(tmp_path: Path):
    (tmp_path / "links.tsv").write_text("a\tb\t0-0\n", encoding="utf-8")
    setting = f"training.links={json.dumps(str(tmp_path / 'links.tsv'))}"
    row = replace(ROW, settings=(*ROW.settings, "training.alignment_weight=1", setting))
    plan = ComparisonPlan(Grid(), (ROW, row), RECIPE, "")
    first, other = plan.key(row, 1, {}), plan.key(ROW, 1, {})
    assert plan.key(row, 1, {}) == first
    (tmp_path / "links.tsv").write_text("a\tb\t\n", encoding="utf-8")
    assert plan.key(row, 1, {}) != first
    assert plan.key(ROW, 1, {}) == other
