"""Several models that decode as one: the same answers from equal ones, a mean from others, and refusals."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.cli.main import main
from heedful.errors import UsageError
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from tests.cli.command import heedful
from tests.cli.conftest import Trained


@pytest.fixture(scope="module")
def other(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same training with another seed."""
    folder = tmp_path_factory.mktemp("other") / "other.model"
    command = ("train", trained.data, "--out", folder, "--config", trained.config, "--set", "training.seed=7")
    done = heedful(*command)
    assert done.code == 0, done.err
    return folder


def texts(trained: Trained) -> list[str]:
    return [line.split("\t")[0] for line in trained.data.read_text(encoding="utf-8").split("\n")[:12]]


def log_probs(translator: Translator, trained: Trained) -> np.ndarray:
    """Of each token of the first pair's target."""
    source, target = trained.data.read_text(encoding="utf-8").split("\n")[0].split("\t")[:2]
    return np.array(translator.score([(source, target)])[0].token_log_probs)


def test_a_model_twice_is_that_model(trained: Trained, tmp_path: Path):
    copy = shutil.copytree(trained.model, tmp_path / "copy.model")
    alone, twice = load(trained.model), load(trained.model, ensemble=[copy])
    for one, both in zip(alone.translate(texts(trained)), twice.translate(texts(trained)), strict=True):
        assert one.text == both.text
        assert one.log_prob == pytest.approx(both.log_prob, abs=1e-5)
    assert twice.backends.searching(twice.search).name == "torch+torch"


def test_probabilities_are_averaged(trained: Trained, other: Path):
    first, second = (log_probs(load(model), trained) for model in (trained.model, other))
    both = log_probs(load(trained.model, ensemble=[other]), trained)
    assert not np.allclose(first, second)
    np.testing.assert_allclose(np.exp(both), (np.exp(first) + np.exp(second)) / 2, rtol=1e-4)


@pytest.fixture
def _two_threads() -> Iterator[None]:
    number = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(number)


@pytest.mark.usefixtures("_two_threads")
@pytest.mark.parametrize("is_ensemble", [False, True])
def test_exact_results_do_not_depend_on_others_by_several_threads(is_ensemble: bool, trained: Trained, other: Path):
    translator = load(trained.model, ensemble=[other] if is_ensemble else [])
    lines = texts(trained)
    together = [each.log_prob for each in translator.translate(lines, exact=True)]
    assert [translator.translate([line], exact=True)[0].log_prob for line in lines] == together
    assert torch.get_num_threads() == 2


def test_the_commands_take_more_models(trained: Trained, other: Path, capfd: pytest.CaptureFixture[str]):
    done = heedful("translate", trained.model, "--ensemble", other, *texts(trained)[:3])
    assert done.code == 0, done.err
    wanted = [each.text for each in load(trained.model, ensemble=[other]).translate(texts(trained)[:3])]
    assert done.out.split("\n")[:-1] == wanted
    assert main(["evaluate", str(trained.model), str(trained.data), "--ensemble", str(other), "--limit", "5"]) == 0
    ensemble = capfd.readouterr().out
    assert main(["evaluate", str(trained.model), str(trained.data), "--limit", "5"]) == 0
    assert "perplexity" in ensemble
    assert ensemble != capfd.readouterr().out


def test_other_tokens_are_refused(trained: Trained, tmp_path: Path):
    data = tmp_path / "other.tsv"
    data.write_bytes(trained.data.read_bytes().replace(b"a", b"z"))
    done = heedful("train", data, "--out", tmp_path / "z.model", "--config", trained.config)
    assert done.code == 0, done.err
    with pytest.raises(UsageError, match=r"z\.model has other tokens than .*words\.model; train it on the same data"):
        load(trained.model, ensemble=[tmp_path / "z.model"])
    done = heedful("translate", trained.model, "--ensemble", tmp_path / "z.model", "x")
    assert done.code == 2
    assert done.err.count("\n") == 1
