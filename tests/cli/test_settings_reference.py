"""Reference of settings: complete, and the same as the page."""

import importlib.util
from typing import Any

import pytest

from heedful.cli.settings_reference import all_settings
from heedful.config.base import Config, parse_overrides
from heedful.errors import ConfigError
from heedful.models.table import MODELS
from heedful.runs.settings import _check_task, load_experiment  # pyright: ignore[reportPrivateUsage]
from heedful.tasks.table import TASKS
from tests.architecture.package import ROOT


def test_every_setting_says_its_meaning():
    assert [line.key for line in all_settings() if not line.meaning or not line.values] == []


def test_types_and_bounds_are_those_of_the_fields():
    values = {line.key: line.values for line in all_settings()}
    assert values["model.dropout"] == "number from 0, below 1"
    assert values["training.optimizer.learning_rate"].startswith("number above 0, at most ")
    assert values["text.source_units"] == "pieces, characters, words"
    assert values["training.train"] == "list of: text"
    assert values["text.shared"] == "true, false"
    assert values["model.attention.softmax_over"] == "window, source, cut"


def test_every_listed_setting_is_one():
    for line in all_settings():
        kind = line.kinds[0] if line.kinds else "transformer"
        value: Any = load_experiment(settings=parse_overrides([f"model.kind={kind}"]))
        for name in line.key.split("."):
            value = getattr(value, name)  # of the preset of the kind, which may differ from the default


def test_all_fields_of_a_model_are_listed():
    listed = {line.key for line in all_settings() if "luong" in line.kinds}
    assert {
        f"model.{name}"
        for name, field in MODELS["luong"].model_fields.items()
        if name != "kind" and not isinstance(field.default, Config)
    } <= listed


OTHER: dict[str, Any] = {
    "text.source_vectors": "a.vec",
    "text.target_vectors": "a.vec",
    "text.vectors": "frozen",
    "text.labels": "several",
    "training.mix": ["old.tsv"],
}
"""Values that are not the default, where a type does not give one."""


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_the_tasks_of_a_setting_are_those_that_take_it(task: Any):
    defaults = load_experiment(settings={"task": task.name}, default_preset=task.default_preset)
    _check_task(task, defaults)
    refused = 0
    for line in all_settings():
        if not line.tasks or task.name in line.tasks:
            continue
        section, _, name = line.key.partition(".")
        part = getattr(defaults, section)
        value = getattr(part, name)
        other = OTHER.get(line.key, not value if isinstance(value, bool) else 1 if value == "" else None)
        if other is None:
            other = value + 1 if isinstance(value, int | float) else "other"
        changed = defaults.model_copy(update={section: part.model_copy(update={name: other})})
        with pytest.raises(ConfigError, match=rf"^{line.key}: "):
            _check_task(task, changed)
        refused += 1
    assert refused > 5


def test_a_setting_of_some_tasks_names_them():
    tasks = {line.key: line.tasks for line in all_settings()}
    assert tasks["images.height"] == ("captioning",)
    assert tasks["search.beam"] == ("translation", "captioning")
    assert tasks["training.mix_share"] == ("translation",)
    assert tasks["text.labels"] == ("classification", "answering")
    assert tasks["training.seed"] == ()


def test_the_page_is_fresh():
    spec = importlib.util.spec_from_file_location("make_settings", ROOT / "docs" / "make_settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run: python docs/make_settings.py"
