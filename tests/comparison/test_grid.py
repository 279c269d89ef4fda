"""A grid's rows: names, order, what is laid on what, and what is refused."""

from itertools import product
from pathlib import Path

import pytest

from heedful.comparison.grid import Grid, NamedSettings, baseline_of, read_grid, rows_of
from heedful.errors import ConfigError
from tests.requests import load_experiment

GRID = """
title = "t"
baseline = "b"
seeds = [3, 5]
[base]
preset = "luong"
[base.training]
max_steps = 7
[base.training.optimizer]
learning_rate = 1e-9
[kinds.luong]
hidden_size = 12
dropout = 0.0
[kinds.transformer]
model_size = 16
[[rows]]
name = "a"
model = { score = "dot", window = "global" }
[[rows]]
name = "b"
[rows.model]
kind = "transformer"
[rows.training]
label_smoothing = 0.5
[[rows]]
name = "c d/é"
preset = "rnnsearch-tiny"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "grid.toml"
    path.write_bytes(text.encode())
    return path


def test_rows_are_base_then_kind_then_row(tmp_path: Path):
    grid = read_grid(write(tmp_path, GRID))
    a, b, c = rows_of(grid)
    assert (grid.seeds, baseline_of(grid, (a, b, c))) == ((3, 5), "b")
    assert [row.name for row in (a, b, c)] == ["a", "b", "c d/é"]
    assert [row.folder for row in (a, b, c)] == ["a", "b", "c-d-é"]
    assert [row.preset for row in (a, b, c)] == ["luong", "", "rnnsearch-tiny"]
    first, second, third = (load_experiment(row.preset, None, row.settings) for row in (a, b, c))
    for experiment in (first, second, third):
        assert experiment.training.max_steps == 7
        assert experiment.training.optimizer.learning_rate == 1e-9
    model = first.model
    assert (model.kind, model.attention.score, model.attention.window) == ("luong", "dot", "global")
    assert (model.hidden_size, model.dropout) == (12, 0.0)
    assert (second.model.kind, second.model.model_size) == ("transformer", 16)
    assert (first.training.label_smoothing, second.training.label_smoothing) == (0.1, 0.5)
    assert (third.model.kind, third.model.hidden_size) == ("rnnsearch", 128)


def test_a_rows_preset_takes_the_place_of_the_kind_of_the_base():
    grid = Grid.model_validate(
        {"base": {"model": {"kind": "luong"}}, "rows": ({"name": "r", "preset": "rnnsearch-tiny"}, {"name": "l"})}
    )
    first, second = (load_experiment(row.preset, None, row.settings).model.kind for row in rows_of(grid))
    assert (first, second) == ("rnnsearch", "luong")


def test_a_row_beats_its_kind():
    grid = Grid.model_validate(
        {
            "kinds": {"luong": {"dropout": 0.5, "hidden_size": 8}},
            "rows": ({"name": "r", "model": {"kind": "luong", "dropout": 0.1}},),
        }
    )
    assert set(rows_of(grid)[0].settings) == {'model.kind="luong"', "model.dropout=0.1", "model.hidden_size=8"}


def test_axes_give_every_combination_the_last_fastest():
    grid = Grid.model_validate(
        {
            "axes": {"model.window": ("global", "local-p"), "model.hidden_size": (4, 8), "model.has_feeding": (True,)},
            "rows": ({"name": "last"},),
            "base": {"model": {"kind": "luong"}},
        }
    )
    rows = rows_of(grid)
    assert [row.name for row in rows] == [
        "global, hidden_size=4, has_feeding=true",
        "global, hidden_size=8, has_feeding=true",
        "local-p, hidden_size=4, has_feeding=true",
        "local-p, hidden_size=8, has_feeding=true",
        "last",
    ]
    assert baseline_of(grid, rows) == rows[0].name
    assert 'model.window="local-p"' in rows[2].settings
    assert "model.has_feeding=true" in rows[2].settings
    assert rows[2].folder == "local-p-hidden_size-4-has_feeding-true"


@pytest.mark.parametrize("kind", ["rnnsearch", "luong", "transformer"])
def test_attention_is_varied_in_every_model(kind: str):
    axes = {
        "model.attention.score": ("general", "additive"),
        "model.attention.normalizer": ("softmax", "sampled"),
        "model.attention.window": ("global", "local-m"),
    }
    grid = Grid.model_validate({"axes": axes, "base": {"model": {"kind": kind}}})
    rows = rows_of(grid)
    assert rows[1].name == "general, softmax, local-m"
    found = [load_experiment(row.preset, None, row.settings).model.attention for row in rows]  # type: ignore[union-attr]
    assert [(each.score, each.normalizer, each.window) for each in found] == [*product(*axes.values())]


def test_strings_lists_and_numbers_survive():
    model = {"a": 'é"\\', "b": [1, 2], "c": 1e-9, "d": False}
    from heedful.config.base import parse_overrides

    (row,) = rows_of(Grid.model_validate({"rows": ({"name": "r", "model": model},)}))
    assert parse_overrides(row.settings) == {"model": model}


ROWS_OF_ENSEMBLE = """seeds = [1, 2]
[[rows]]
name = 'a'
[[rows]]
name = 'b'
seeds = [1, 3]
[[rows]]
name = 'c'
ensemble = ['a', 'b']
"""


def test_a_row_may_have_seeds_of_its_own(tmp_path: Path):
    grid = read_grid(write(tmp_path, ROWS_OF_ENSEMBLE))
    assert [row.seeds for row in rows_of(grid)] == [(1, 2), (1, 3), (1,)]
    assert [row.seeds for row in rows_of(grid, (7, 8))] == [(7, 8)] * 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no rows"),
        ("[[rows]]\nname = 'a'\n[[rows]]\nname = 'a'", "would share the folder a: rename one"),
        ("[[rows]]\nname = 'a b'\n[[rows]]\nname = 'A-B'", "'a b' and 'A-B' would share"),
        ("baseline = 'aa'\n[[rows]]\nname = 'a'", "no row 'aa'; did you mean 'a'?"),
        ("[[rows]]\nname = 'a'\npreset = 'luongg'", "row 'a': no preset 'luongg'; did you mean 'luong'?"),
        ("[[rows]]\nname = 'a'\nmodel = { kind = 'luongg' }", "row 'a': no model 'luongg'; did you mean 'luong'?"),
        ("[axes]\n'model.window' = []\n'model.x' = [1]", "axes.model.window: has no values"),
        ("[axes]\n'model.x' = [1, 1.0, 1]\n'modl.y' = [1]", "axes.modl: unknown key; did you mean 'model'?"),
        (f"[axes]\na = {list(range(40))}\nb = {list(range(40))}", "1,600 combinations"),
        ("[[rows]]\nname = ''", "rows.0.name"),
        ("[[rows]]\nname = 'a'\nseeds = [1, 2, 1]", "row 'a': seeds: 1 twice"),
        (ROWS_OF_ENSEMBLE + "seeds = [2]", "row 'c': seeds: not every row of the ensemble has 2"),
        (ROWS_OF_ENSEMBLE.replace("1, 3", "3, 4"), "row 'c': no seed that all rows of the ensemble have"),
    ],
)
def test_what_no_grid_is(text: str, complaint: str, tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        rows_of(read_grid(write(tmp_path, text)))
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("rowss = []", "unknown key"), ("seeds = []", "seeds"), ("seeds = ['1']", "seeds"), ("[", "not valid TOML")],
)
def test_a_refused_file_is_named(text: str, complaint: str, tmp_path: Path):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_grid(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).count(str(path)) == 1
    assert complaint in str(caught.value)


def test_settings_for_a_kind_are_for_the_usual_kind_too_and_other_names_are_refused():
    grid = Grid(
        kinds={"transformer": {"dropout": 0.4}}, rows=(NamedSettings(name="a"), NamedSettings(name="b", preset="luong"))
    )
    first, second = rows_of(grid)
    assert first.settings == ("model.dropout=0.4",)
    assert second.settings == ()
    with pytest.raises(ConfigError, match=r"kinds\.luon: no model 'luon'; did you mean 'luong'"):
        rows_of(Grid(kinds={"luon": {"dropout": 0.4}}, rows=(NamedSettings(name="a"),)))
