"""The predictor of each task."""

import json
from pathlib import Path

import pytest
import torch

from heedful.errors import FileRefused, ResourceError, UsageError
from heedful.predictors.classifier import Classifier
from heedful.predictors.table import PREDICTORS, load
from heedful.predictors.translator import Translator
from heedful.tasks.table import TASKS, find_task
from tests.seal import write_sealed
from tests.tasks.reviews import write_reviews
from tests.tasks.test_classification import Run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("predictors")
    Run(write_reviews(folder / "reviews.tsv"), folder / "m", "training.max_steps=20").train()
    return folder / "m"


def test_every_task_has_a_predictor_and_its_own_name():
    assert PREDICTORS.keys() == TASKS.keys()
    assert all(task.name == name for name, task in TASKS.items())


def test_a_folder_is_opened_as_what_it_is(model: Path):
    assert isinstance(load(model), Classifier)
    assert load(model, kind=Classifier).labels == ("bad", "good")
    assert isinstance(find_task("classification").open(model), Classifier)
    with pytest.raises(UsageError, match="a model for classification, not for translation"):
        load(model, kind=Translator)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused_at_once(model: Path):
    for device, kind, complaint in (
        ("cuda", ResourceError, "device cuda: PyTorch finds no CUDA device here; take cpu, or auto"),
        ("cuda:1", ResourceError, "device cuda:1: PyTorch finds no CUDA device"),
        ("gpu", UsageError, "device 'gpu': no such kind of device"),
    ):
        with pytest.raises(kind, match=complaint):
            load(model, device)
    assert isinstance(load(model, "auto"), Classifier)


def test_a_task_of_a_newer_heedful_is_refused(model: Path, tmp_path: Path):
    facts = json.loads((model / "heedful.json").read_text(encoding="utf-8"))
    for name in facts["files"]:
        (tmp_path / name).write_bytes((model / name).read_bytes())
    write_sealed(tmp_path / "heedful.json", facts | {"task": "poetry"})
    with pytest.raises(FileRefused, match="a model for poetry, which this heedful does not know"):
        load(tmp_path)


def test_an_unknown_task_is_refused():
    with pytest.raises(UsageError, match="no such task; did you mean 'classification'"):
        find_task("clasification")
