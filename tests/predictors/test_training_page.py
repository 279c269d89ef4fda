"""Attention on the page of a training: there if the model can be run, and never a reason to fail."""

from pathlib import Path

import pytest

from heedful.errors import MissingExtra
from heedful.pages.record import read_run
from heedful.predictors import training_page
from heedful.predictors.training_page import sample_views, write_page
from heedful.runs.api import train_model

TINY = {"model.kind": "rnnsearch", "model.embedding_size": 8, "model.hidden_size": 8, "model.alignment_size": 8}
RUN = {"training.max_steps": 4, "training.validate_every": 2, "training.batch_tokens": 256, "text.max_tokens": 20}
UNITS = {"text.source_units": "characters", "text.target_units": "characters", "training.export": False}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    data = folder / "words.tsv"
    words = [f"{first}{second}{third}" for first in "abcde" for second in "abcde" for third in "abcde"]
    data.write_text("".join(f"{word}\t{word.upper()}\n" for word in words))
    train_model(data, out=folder / "m", settings=TINY | RUN | UNITS, quiet=True)
    return folder / "m"


def test_the_samples_have_maps(model: Path, tmp_path: Path):
    run = read_run(model)
    maps = sample_views(model, run)
    assert [one.title.partition(" → ")[0] for one in maps] == [
        source for source, _, _ in run.validations[-1]["samples"]
    ]
    for one in maps:
        assert len(one.weights) == len(one.target_pieces)
        assert {len(row) for row in one.weights} == {len(one.source_pieces)}
    write_page(model, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('class="map"') == len([one for one in maps if one.target_pieces])
    assert "<h2>Attention</h2>" in page


def test_a_model_that_cannot_be_run_has_a_page_without_maps(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def missing(*arguments: object) -> None:
        raise MissingExtra("PyTorch", "train", "running this model")

    monkeypatch.setattr(training_page, "load", missing)
    write_page(model, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h2>Attention</h2>" not in page
    assert "<h2>Curves</h2>" in page
