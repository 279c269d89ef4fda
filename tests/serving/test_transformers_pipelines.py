"""Pipelines beside the shapes and names of Transformers 4."""

from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.errors import UsageError
from heedful.search.config import SearchConfig
from heedful.serving.transformers_pipelines import search_settings
from tests.cli.command import heedful as command
from tests.cli.conftest import SETTINGS, Trained, write_pairs


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained(tmp_path_factory.mktemp("pipeline"))


@pytest.mark.parametrize(
    ("task", "key"),
    [
        ("translation", "translation_text"),
        ("translation_de_to_en", "translation_text"),
        ("summarization", "summary_text"),
        ("text2text-generation", "generated_text"),
    ],
)
def test_results_have_the_shapes_and_keys_of_transformers(trained: Trained, task: str, key: str):
    pipe = heedful.pipeline(task, trained.model)
    expected = [one.text for one in heedful.load(trained.model, kind=heedful.Translator).translate(["abc", "de"])]
    assert pipe("abc") == [{key: expected[0]}]
    assert pipe(["abc", "de"]) == [{key: text} for text in expected]
    several: Any = pipe("abc", num_return_sequences=2)
    assert [set(one) for one in several] == [{key}, {key}]
    many: Any = pipe(["abc", "de"], num_return_sequences=2)
    assert [len(one) for one in many] == [2, 2]
    (ids,) = pipe("abc", return_tensors=True)
    assert set(ids) == {key.replace("_text", "_token_ids")}


def test_settings_of_the_call_win(trained: Trained):
    pipe = heedful.pipeline("translation", trained.model, max_new_tokens=1)
    assert len(pipe("abc")[0]["translation_text"]) <= 1  # type: ignore[call-overload,index]
    assert pipe("abc", max_new_tokens=4) == pipe("abc", max_length=5)


def test_generation_arguments_are_search_settings():
    settings = {"num_beams": 4, "num_return_sequences": 2, "length_penalty": 0.5, "do_sample": False, "top_k": 50}
    config = search_settings(SearchConfig(), settings)
    assert (config.beam, config.nbest, config.alpha, config.top_k) == (4, 2, 0.5, 0)
    sampling = search_settings(SearchConfig(), {"do_sample": True, "top_k": 5, "num_return_sequences": 3})
    assert (sampling.method, sampling.beam, sampling.nbest, sampling.top_k) == ("sampling", 1, 3, 5)


@pytest.mark.parametrize(
    ("early", "stopping"), [(None, "full"), (False, "full"), (True, "likely"), ("never", "certain")]
)
def test_early_stopping_is_a_rule_of_beams(early: object, stopping: str):
    settings = {"early_stopping": early}
    assert search_settings(SearchConfig(), {"num_beams": 4, **settings}).stopping == stopping
    assert search_settings(SearchConfig(), {"num_beams": 1, **settings}).stopping == "likely"
    assert search_settings(SearchConfig(), {"do_sample": True, **settings}).stopping == "likely"


@pytest.mark.parametrize("early", ["sometimes", [1], 2])
def test_early_stopping_of_another_value_is_refused(early: object):
    with pytest.raises(UsageError, match="early_stopping"):
        search_settings(SearchConfig(), {"early_stopping": early})


def test_what_is_unknown_is_refused(trained: Trained):
    with pytest.raises(UsageError, match="no such task"):
        heedful.pipeline("fill-mask", trained.model)
    with pytest.raises(UsageError, match="unknown argument beams"):
        heedful.pipeline("translation", trained.model)("abc", beams=2)


def test_a_marian_folder_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = tmp_path / "pieces.toml"
    config.write_text(
        SETTINGS.replace('"characters"', '"pieces"').replace("num_heads = 2", 'num_heads = 2\nnorm = "post"'), "utf-8"
    )
    data = write_pairs(tmp_path / "words.tsv", 150)
    model, folder = tmp_path / "words.model", tmp_path / "marian"
    for words in (
        ("train", data, "--out", model, "--config", config),
        ("export", model, "--to", "huggingface", folder),
    ):
        done = command(*words)
        assert done.code == 0, done.err
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    limits = {"num_beams": 2, "max_new_tokens": 6}
    outputs = [heedful.pipeline("translation", folder)(["abc", "fade"], **limits) for _ in range(2)]
    assert outputs[0] == outputs[1] == heedful.pipeline("translation", model)(["abc", "fade"], **limits)
    assert len([*(tmp_path / "heedful").iterdir()]) == 1
