"""What a grid is made of when it runs: one recipe for each row and seed, and the commands that stand for them."""

import shlex
from pathlib import Path

from heedful.cli.comparing import MEASURES, Plan, shell_command
from heedful.comparison.grid import Grid, Row
from heedful.comparison.summary import COLUMNS
from heedful.config import parse_overrides
from heedful.recipe import Recipe

RECIPE = Recipe(
    data=(Path("a b.de"), Path("a.en")),
    dev=(Path("v.de"), Path("v.en")),
    out=Path("out"),
    columns=(2, 1),
    languages=("de", "en"),
    settings=("training.max_minutes=2.5",),
    device="cpu",
)
ROW = Row("a/b c", "luong", ('model.score="dot"', "training.max_minutes=9", "training.seed=4"))


def test_the_budget_and_the_seed_beat_the_row():
    recipe = Plan(Grid(), (ROW,), (1, 7), RECIPE, "").run(ROW, 7)
    assert recipe.out == Path("out/runs/a-b-c-7")
    assert (recipe.preset, recipe.data, recipe.dev, recipe.columns) == ("luong", RECIPE.data, RECIPE.dev, (2, 1))
    settings = parse_overrides(recipe.settings)
    assert settings == {"model": {"score": "dot"}, "training": {"max_minutes": 2.5, "seed": 7}}


def test_a_command_says_all_that_the_recipe_does():
    recipe = Plan(Grid(), (ROW,), (1,), RECIPE, "").run(ROW, 1)
    words = shlex.split(shell_command(("train",), recipe, ("--out", "x")))
    assert words[:8] == ["heedful", "train", "a b.de", "a.en", "--dev", "v.de", "--dev", "v.en"]
    assert words[8:14] == ["--columns", "2,1", "--languages", "de:en", "--preset", "luong"]
    assert [word for word in words[14:-2] if word != "--set"] == [*recipe.settings]
    assert words[-2:] == ["--out", "x"]
    assert "--set" not in shell_command(("compare", "g.toml"), RECIPE, ())
    assert "--preset" not in shell_command(("compare", "g.toml"), recipe, ())


def test_every_measure_has_a_column():
    assert MEASURES.keys() <= {column.key for column in COLUMNS}
