"""Output files of a comparison."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heedful.comparison import save_tables
from tests.comparison.made import ITEMS, by_row, make_finding


def make_plan(out: Path) -> Any:
    grid = SimpleNamespace(metrics=("bleu",), title="t", length_edges=(), baseline="")
    rows = (SimpleNamespace(name="a"),)
    return SimpleNamespace(grid=grid, rows=rows, gold=None, command="c", out=out, context=list)


def test_the_plot_and_the_page_name_the_measured_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    labels: list[str] = []

    def save(path: Path, *arguments: Any) -> None:
        labels.extend(arguments[-2:])
        path.write_bytes(b"")

    monkeypatch.setattr(save_tables, "save_length_plot", save)
    items = ITEMS.model_copy(update={"are_images": True})
    save_tables.write_tables(make_plan(tmp_path), items, by_row([make_finding("a", 20)]), {}, print)
    assert labels == ["words", "reference"]


def test_the_json_is_json_whatever_the_figures(tmp_path: Path):
    def refuse(name: str) -> None:
        raise ValueError(name)

    items = ITEMS.model_copy(update={"are_images": True})
    runs = [make_finding("a", 20, 1, perplexity=math.inf), make_finding("a", 30, 2)]
    save_tables.write_tables(make_plan(tmp_path), items, by_row(runs), {}, print)
    facts = json.loads((tmp_path / "table.json").read_bytes(), parse_constant=refuse)
    assert facts["rows"][0]["figures"]["perplexity"]["mean"] is None
