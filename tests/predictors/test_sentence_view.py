"""A view shows what the search found, and goes on from any prefix."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from heedful.errors import MissingExtra
from heedful.pages.sentence import SentenceView
from heedful.predictors import sentence_view
from heedful.predictors.sentence_view import NUM_OUTPUTS, SentenceViewer, ViewRequest
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import EOS
from tests.cli.command import heedful
from tests.cli.conftest import Trained, write_pairs
from tests.thorough import thorough


@pytest.fixture
def viewer(trained: Trained) -> SentenceViewer:
    translator = load(trained.model, engine="torch")
    assert isinstance(translator, Translator)
    return SentenceViewer(translator)


def test_outputs_are_those_of_translate(viewer: SentenceViewer, trained: Trained):
    view = viewer.view(ViewRequest("fade"))
    translator = load(trained.model, engine="torch")
    expected = translator.translate(["fade"], beam=5, nbest=NUM_OUTPUTS, attention=True)[0]
    assert [one.text for one in view.outputs] == [one.text for one in expected.alternatives]
    assert [one.log_prob for one in view.outputs] == pytest.approx([one.log_prob for one in expected.alternatives])
    np.testing.assert_allclose(view.outputs[0].weights, expected.attention, atol=1e-6)
    assert view.source_ids[-1] == EOS


def test_a_prefix_is_kept_and_continued(viewer: SentenceViewer):
    best = viewer.view(ViewRequest("fade")).outputs[0]
    choice = next(one for one in best.choices[1] if one.token not in (best.ids[1], EOS))
    view = viewer.view(ViewRequest("fade", prefix=(best.ids[0], choice.token)))
    assert view.outputs
    for output in view.outputs:
        assert output.ids[:2] == (best.ids[0], choice.token)
        assert output.num_forced == 2


def test_layers_belong_to_the_best_output(viewer: SentenceViewer):
    view = viewer.view(ViewRequest("fade"))
    cross = [one for one in view.maps if one.role == "cross"]
    assert [one.weights.shape[1:] for one in cross] == [(len(view.outputs[0].ids), len(view.source_ids))]
    # One layer: its mean over heads is the alignment that the engine reported while it generated.
    np.testing.assert_allclose(cross[0].weights.mean(axis=0), view.outputs[0].weights, atol=1e-5)


def test_blank_text_has_no_output(viewer: SentenceViewer):
    view = viewer.view(ViewRequest("   ", traced_beams=(2,)))
    assert (view.outputs, view.maps, view.searches) == ((), (), ())


def test_the_length_penalty_of_a_request_is_the_search_s(viewer: SentenceViewer):
    config = viewer.search_config(ViewRequest("fade", beam=3, alpha=0.0))
    assert (config.beam, config.nbest, config.alpha) == (3, 3, 0.0)
    assert isinstance(config, SearchConfig)
    view = viewer.view(ViewRequest("fade", alpha=0.0))
    assert [one.score for one in view.outputs] == pytest.approx([one.log_prob for one in view.outputs])


@thorough
def test_without_pytorch_an_onnx_engine_gives_the_layers(
    trained: Trained,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    pytest.importorskip("onnxruntime")
    model = tmp_path / "words.model"
    shutil.copytree(trained.model, model)
    done = heedful("export", model, "--to", "onnx", "--layers")
    assert done.code == 0, done.err
    expected = viewed(model)

    def missing(_: Translator) -> None:
        raise MissingExtra("torch", "train", "this")

    monkeypatch.setattr(Translator, "model", missing)
    view = viewed(model)
    assert [(one.role, one.layer) for one in view.maps] == [(one.role, one.layer) for one in expected.maps]
    for one, other in zip(view.maps, expected.maps, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-4)
    assert "layers" not in view.missing
    monkeypatch.setattr(sentence_view, "LAYERS", "absent.onnx")
    view = viewed(model)
    assert view.maps == ()
    assert view.missing["layers"].endswith("or: heedful export words.model --to onnx --layers")


def test_heads_of_words_are_shown_and_without_pytorch_named_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data, model = write_pairs(tmp_path / "words.tsv", 60), tmp_path / "heads.model"
    settings = ("model.embedding_size=8", "model.hidden_size=8", "training.max_steps=2", "training.export=false")
    changes = [part for setting in settings for part in ("--set", setting)]
    done = heedful("train", data, "--out", model, "--preset", "syntactic", *changes)
    assert done.code == 0, done.err
    view = viewed(model)
    num_words = len(view.source_ids)
    assert [(one.role, one.has_root) for one in view.maps] == [("cross", False), ("encoder", True)]
    assert view.maps[1].weights.shape == (1, num_words, num_words + 1)
    assert view.maps[1].tree is not None
    done = heedful("inspect", model, "fade", "--attention", "encoder")
    assert (done.code, "⟨root⟩" in done.out) == (0, True)

    def missing(_: Translator) -> None:
        raise MissingExtra("torch", "train", "this")

    monkeypatch.setattr(Translator, "model", missing)
    view = viewed(model)
    assert [one.role for one in view.maps] == ["cross"]
    assert "heads" in view.missing


def viewed(model: Path) -> SentenceView:
    translator = load(model)
    assert isinstance(translator, Translator)
    return SentenceViewer(translator).view(ViewRequest("fade"))
