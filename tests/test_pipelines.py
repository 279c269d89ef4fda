"""Pipelines beside the shapes and names of Transformers 4."""

from typing import Any

import pytest

import heedful
from heedful.errors import UsageError
from heedful.pipelines import search_settings
from heedful.search.config import SearchConfig
from tests.cli.conftest import Trained


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


def test_what_is_unknown_is_refused(trained: Trained):
    with pytest.raises(UsageError, match="no such task"):
        heedful.pipeline("fill-mask", trained.model)
    with pytest.raises(UsageError, match="unknown argument beams"):
        heedful.pipeline("translation", trained.model)("abc", beams=2)
