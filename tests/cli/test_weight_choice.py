"""Choice of stored weights by items, of a file or of the model's own validation, for models of every task."""

import shutil
from pathlib import Path

import pytest

from heedful.cli.weight_choice import WeightChoice
from heedful.export.stored_weights import SMALLEST, WeightKind, stored
from heedful.predictors.table import load
from tests.cli.command import heedful
from tests.cli.conftest import Trained
from tests.serving.task_models import TaskModels
from tests.thorough import thorough


def test_the_smallest_kind_that_loses_next_to_nothing_is_taken():
    scores: dict[WeightKind, float] = {"int8": 30.9, "float16": 31.2, "float32": 31.2}
    assert WeightChoice("bleu", scores).kind == "float16"
    assert WeightChoice("token_error_rate", scores, is_loss=True).kind == "int8"


def broken(graph: bytes, kind: WeightKind) -> bytes:
    """Graph whose weights are zero in 8 bits."""
    import onnx
    from onnx import numpy_helper

    if kind != "int8":
        return stored(graph, kind)
    model = onnx.load_model_from_string(graph)
    for constant in model.graph.initializer:
        values = numpy_helper.to_array(constant)
        if constant.data_type == onnx.TensorProto.FLOAT and values.size >= SMALLEST:
            constant.CopyFrom(numpy_helper.from_array(0 * values, constant.name))
    return model.SerializeToString()


def test_own_validation_decides_where_there_is_enough(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    copied = Path(shutil.copytree(trained.model, tmp_path / "words.model"))
    command = ("export", copied, "--to", "js", "-o", tmp_path / "words.tgz")
    few = heedful(*command)
    assert (few.code, "weights in 16 bits; --dev FILE" in few.err) == (0, True), few.err
    monkeypatch.setattr("heedful.cli.weight_choice.FEWEST_OWN", 1)
    own = heedful(*command)
    assert (own.code, "items for validation: int8" in own.err, "taken: int8" in own.err) == (0, True, True), own.err
    shutil.rmtree(copied / "run")
    assert "weights in 16 bits" in heedful(*command).err


@thorough
def test_weights_that_lose_are_not_taken(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    copied = Path(shutil.copytree(trained.model, tmp_path / "words.model"))
    words = [line.partition("\t")[0] for line in trained.data.read_text("utf-8").splitlines()[:20]]
    dev = tmp_path / "dev.tsv"  # which the model has right
    pairs = zip(words, load(copied).predict(words), strict=True)
    dev.write_text("".join(f"{word}\t{output}\n" for word, output in pairs), encoding="utf-8")
    monkeypatch.setattr("heedful.cli.weight_choice.stored", broken)
    done = heedful("export", copied, "--to", "js", "-o", tmp_path / "words.tgz", "--dev", dev)
    assert "float32 100.00 exact_match; taken: float16" in done.err


@thorough
def test_items_of_other_tasks_decide_too(task_models: TaskModels, tmp_path: Path):
    copied = Path(shutil.copytree(task_models.answerer, tmp_path / "stories.model"))
    dev = task_models.answerer.parent / "stories.jsonl"
    done = heedful("export", copied, "--to", "js", "-o", tmp_path / "stories.tgz", "--dev", dev)
    assert (done.code, f"100 items of {dev}: int8" in done.err, "accuracy; taken: int8" in done.err) == (0, True, True)
