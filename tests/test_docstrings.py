"""Docstring examples that need a trained model, data or a package of an extra run with small ones of these names."""

import ast
import doctest
import importlib
import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import ascii_lowercase
from types import SimpleNamespace
from typing import Any

import pytest

import heedful
from heedful.text.tokenizer import UnitTokenizer
from heedful.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.architecture.package import ROOT
from tests.cli.conftest import Trained
from tests.serving.task_models import TaskModels
from tests.test_examples import SHORT

MARK = "# doctest: +SKIP"
SOURCE = ROOT / "src"
TRAINED = re.compile(r'\.(model|tsv)"|\.fit\(')
"""Sign of an example whose outputs follow from weights."""
LITERAL = re.compile(r"'[^']*'|-?\b\d+(\.\d+)?(e-?\d+)?\b")
GRID = """
title = "Two models"
[base.text]
source_units = "pieces"
target_units = "pieces"
vocabulary_size = 400
[base.training]
batch_tokens = 256
[kinds.luong]
num_layers = 1
embedding_size = 16
hidden_size = 16
[[rows]]
name = "no attention"
model = { kind = "rnn_encoder_decoder", num_layers = 1, embedding_size = 16, hidden_size = 16 }
[[rows]]
name = "global (general)"
model = { kind = "luong", attention.score = "general" }
"""


def marked() -> Iterator[tuple[str, str]]:
    """Names of the package whose docstrings have marked examples, and these docstrings."""
    documented = ast.Module, ast.ClassDef, ast.FunctionDef
    for path in sorted((SOURCE / "heedful").rglob("*.py")):
        text = path.read_bytes().decode("utf-8")
        if MARK not in text:
            continue
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(text)):
            code = ast.get_docstring(node) if isinstance(node, documented) else None
            if code and MARK in code:
                yield f"{module}:{getattr(node, 'name', '')}", code


class Forms(doctest.OutputChecker):
    """Comparison of outputs; of those that follow from weights, of what is left without words and numbers."""

    def __init__(self, is_trained: bool) -> None:
        self.is_trained = is_trained

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if self.is_trained:
            want, got = (LITERAL.sub("_", each) for each in (want, got))
        return super().check_output(want, got, optionflags)


def stand_in(patch: pytest.MonkeyPatch, name: str, **parts: Any) -> None:
    """Put parts in place of a package that is not installed."""
    if not importlib.util.find_spec(name):
        patch.setitem(sys.modules, name, SimpleNamespace(**parts))


class Runner:
    """Runner of examples, as by one who has imported heedful, in a folder with the files that they name."""

    def __init__(self, folder: Path, models: Mapping[str, Path]) -> None:
        self.folder = folder
        self.models = models
        characters = UnitTokenizer(Vocabulary([*SPECIAL_TOKENS, *ascii_lowercase]), "characters", "none")
        self.names = {"heedful": heedful, "characters": characters, "tokenizer": characters}

    def run(self, name: str, code: str) -> str:
        """Run the examples of a docstring; gives what fails."""
        for model, path in self.models.items():
            if f"{model}.model" in code:
                shutil.copytree(path, self.folder / f"{model}.model")
        names = {**vars(importlib.import_module(name.partition(":")[0])), **self.names}
        test = doctest.DocTestParser().get_doctest(code.replace(MARK, ""), names, name, None, None)
        said: list[str] = []
        doctest.DocTestRunner(Forms(bool(TRAINED.search(code))), verbose=False).run(test, out=said.append)
        return "".join(said)


@pytest.fixture
def runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: Trained, sentences: Path, task_models: TaskModels
) -> Runner:
    """Runner for which all trainings are over in a moment."""
    from traitlets import HasTraits

    from heedful.comparison.compare import compare_grid
    from heedful.predictors import notebook
    from heedful.runs.api import train_model
    from heedful.sklearn.text_estimator import TextEstimator
    from tests.layers.test_backbone import create_model

    def train_briefly(*data: Any, minutes: float = 0, preset: str = "", **options: Any) -> object:
        return train_model(*data, settings=SHORT, quiet=True, **options)

    def compare_briefly(*data: Any, minutes_per_run: float) -> object:
        return compare_grid(*data, minutes_per_run=minutes_per_run / 60_000, quiet=True)

    def fit_briefly(estimator: TextEstimator, texts: Any, labels: Any, settings: Mapping[str, object]) -> None:
        fit_rows(estimator, texts, labels, {**settings, "training.max_steps": 2, "training.validate_every": 2})

    fit_rows = TextEstimator.fit_rows
    monkeypatch.setattr(TextEstimator, "fit_rows", fit_briefly)
    monkeypatch.setattr(heedful, "train", train_briefly, raising=False)
    monkeypatch.setattr(heedful, "compare", compare_briefly, raising=False)
    stand_in(monkeypatch, "timm", create_model=lambda name, **options: create_model("small", **options))
    stand_in(monkeypatch, "anywidget", AnyWidget=HasTraits)
    monkeypatch.setattr(notebook, "_widget_kind", notebook._widget_kind.__wrapped__)  # type: ignore[attr-defined]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.chdir(tmp_path)
    shutil.copy(trained.data, tmp_path / "pairs.tsv")
    shutil.copy(sentences.with_name("sentences.tsv"), tmp_path / "de-en.tsv")
    (tmp_path / "dog.jpg").write_bytes(task_models.picture)
    (tmp_path / "grid.toml").write_text(GRID, "utf-8")
    models = {"pairs": trained.model, "de-en": sentences, "facts": task_models.answerer}
    return Runner(tmp_path, {**models, "reviews": task_models.classifier, "photos": task_models.captioner})


EXAMPLES = dict(marked())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_with_a_model_runs(name: str, runner: Runner):
    assert runner.run(name, EXAMPLES[name]) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [("heedful.load", "heedful.laod"), ("].text", "].words"), ('"pairs.model"', '"pears.model"'), ("'2021", "2021")],
)
def test_a_fault_in_an_example_is_seen(old: str, new: str, runner: Runner):
    name = "heedful.predictors.table:load"
    code = EXAMPLES[name].replace(old, new, 1)
    assert code != EXAMPLES[name]
    assert runner.run(name, code)
