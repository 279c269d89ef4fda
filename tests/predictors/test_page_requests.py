"""The page's requests are checked, and answered with JSON values."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from heedful.errors import ConfigError, UsageError
from heedful.inspection.measures.table import MEASURES
from heedful.pages.record import RunRecord, read_run
from heedful.pages.sentence import MEASURE_NAMES
from heedful.predictors import page_requests
from heedful.predictors.page_requests import PageRequests
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from tests.cli.conftest import Trained


@pytest.fixture(scope="module")
def requests(trained: Trained) -> PageRequests:
    translator = load(trained.model, engine="torch")
    assert isinstance(translator, Translator)
    return PageRequests({"words": translator})


def test_every_answer_is_json(requests: PageRequests):
    answers = (
        requests.models(),
        requests.view({"text": "fade", "traced": True, "layers": True}),
        requests.training(""),
        requests.evaluation(""),
    )
    for answer in answers:
        assert json.loads(json.dumps(answer, allow_nan=False)) == answer


def test_parts_are_computed_only_where_asked_for(requests: PageRequests):
    view = requests.view({"text": "fade"})
    assert (view["maps"], view["searches"], view["model"]) == ([], [], "words")
    assert len(requests.view({"text": "fade", "traced": True, "beam": 3})["searches"][0]["nodes"]) > 3


def test_a_measure_is_shown_where_it_is_defined_and_attention_otherwise(requests: PageRequests):
    views = {name: requests.view({"text": "abc", "layers": True, "measure": name}) for name in MEASURE_NAMES}
    for name, view in views.items():
        assert (view["measure"], view["measures"], view["missing"]) == (name, list(MEASURE_NAMES), {})
    assert len({json.dumps(view["maps"]) for view in views.values()}) == len(views)
    change = {"role": "cross", "layer": 0, "kind": "off"}
    changed = requests.view({"text": "abc", "layers": True, "measure": "alti", "changes": [change]})
    assert changed["measure"] == "attention"
    assert "undo the changes" in changed["missing"]["measure"]


def test_the_measures_are_those_of_the_table():
    assert tuple(MEASURES) == MEASURE_NAMES


def test_changes_come_with_the_output_without_them(requests: PageRequests):
    plain = requests.view({"text": "fade"})
    changed = requests.view({"text": "fade", "changes": [{"role": "cross", "layer": 0, "kind": "off"}]})
    assert changed["unchanged"] == plain["outputs"][0]["text"]
    assert changed["outputs"][0]["logProb"] != plain["outputs"][0]["logProb"]


def test_a_model_of_characters_reads_text_without_letters(requests: PageRequests):
    view = requests.view({"text": "12/3"})
    assert (view["source"]["text"], view["passage"], len(view["outputs"]) > 0) == ("12/3", None, True)


@pytest.mark.parametrize(
    "body",
    [{"text": "a" * 5001}, {"text": "a", "beam": 13}, {"text": "a", "alpha": -1}, {"text": "a", "unknown": 1}, {}],
)
def test_requests_out_of_range_are_refused(requests: PageRequests, body: dict[str, object]):
    with pytest.raises(ConfigError):
        requests.view(body)


def test_a_model_that_is_not_loaded_is_named(requests: PageRequests):
    with pytest.raises(UsageError, match=r"no model 'word' is loaded.*words"):
        requests.training("word")


def test_the_record_of_training_has_its_curves_and_samples(requests: PageRequests):
    record = requests.training("words")
    assert [step for step, _ in record["curves"]["training loss"]] == [4.0, 8.0]
    assert record["samples"][0]["outputs"][-1][0] == 8


def test_infinite_figures_are_left_out_of_the_curves(requests: PageRequests, monkeypatch: pytest.MonkeyPatch):
    def diverged(*arguments: Any) -> RunRecord:
        run = read_run(*arguments)
        first, *others = run.validations
        return replace(run, validations=({**first, "loss": math.inf}, *others))

    monkeypatch.setattr(page_requests, "read_run", diverged)
    record = json.loads(json.dumps(requests.training(""), allow_nan=False))
    assert [step for step, _ in record["curves"]["training loss"]] == [8]
