"""LibreTranslate's interface, body for body."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import ResourceError
from heedful.serving import service
from heedful.serving.keys import Keys
from heedful.serving.limits import Limits
from heedful.serving.suggestions import Suggestions
from tests.cli.command import disk_quota
from tests.serving.reversing import Reverser, is_in_event_loop, serve

PAIR = {"source": "de", "target": "en"}


def test_json_form_query_and_multipart_are_one():
    client = serve()
    fields = {"q": "abc", **PAIR}
    answers = [
        client.post("/translate", json=fields),
        client.post("/translate", data=fields),
        client.post("/translate", params=fields),
        client.post("/translate/", params=fields),
        client.post("/translate", files={name: (None, value) for name, value in fields.items()}),
        client.post("/", json=fields),
    ]
    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, {"translatedText": "cba"})] * 6


def test_a_form_that_repeats_q_is_a_list():
    client = serve()
    fields = {"q": ["abc", "de"], **PAIR}
    parts = [("q", (None, "abc")), ("q", (None, "de")), *((name, (None, value)) for name, value in PAIR.items())]
    for form in ({"data": fields}, {"params": fields}, {"files": parts}):
        answer = client.post("/translate", **form)
        assert answer.json() == {"translatedText": ["cba", "ed"]}


def test_a_list_gives_lists():
    answer = serve().post("/translate", json={"q": ["abc", "", "de"], "alternatives": 1, **PAIR}).json()
    assert answer["translatedText"] == ["cba", "", "ed"]
    assert answer["alternatives"] == [["cba+"], [], ["ed+"]]


def test_faults_are_told_if_asked():
    client = serve(Reverser(), Reverser(("en", "fr")))
    fields = {"q": ["abc. Faulty. de", "abc"], **PAIR}
    assert "faults" not in client.post("/translate", json=fields).json()
    answer = client.post("/translate", json=fields | {"faults": True}).json()
    assert answer["faults"] == ["loop", ""]
    page = {"q": "<p>abc</p><p>Faulty</p>", "format": "html", "faults": "true", **PAIR}
    assert client.post("/translate", data=page).json()["faults"] == "loop"
    lost = {"q": "<p>Losing</p>", "format": "html", "faults": "1", **PAIR}
    assert client.post("/translate", data=lost).json()["faults"] == "lost"
    chain = {"q": "Faulty.", "source": "de", "target": "fr", "faults": True}
    assert client.post("/translate", json=chain).json()["faults"] == "loop"
    assert client.post("/translate", json={**chain, "target": "de"}).json()["faults"] == ""


def test_a_language_is_detected_only_if_asked():
    client = serve(Reverser(known="abc"), Reverser(("fr", "en"), known="xyz"))
    answer = client.post("/translate", json={"q": ["abc", "zyx"], "source": "auto", "target": "en"}).json()
    assert answer["translatedText"] == ["cba", "xyz"]
    assert [each["language"] for each in answer["detectedLanguage"]] == ["de", "fr"]
    guesses = client.post("/detect", data={"q": "xxyz"}).json()
    assert guesses[0]["language"] == "fr"
    assert guesses[0]["confidence"] > 90


def test_tags_stay():
    source = '<p class="a>b">abc &amp; <b>de</b><br/></p><script>var x = "abc"</script><p translate="no">abc</p>'
    answer = serve(Reverser(known="abcde &")).post("/translate", json={"q": source, "format": "html", **PAIR}).json()
    assert answer["translatedText"] == (
        '<p class="a>b"><b>ed</b> &amp; cba<br/></p><script>var x = "abc"</script><p translate="no">abc</p>'
    )


def test_what_a_model_writes_becomes_no_tag():
    answer = serve().post("/translate", json={"q": "&gt;b&lt;", "format": "html", **PAIR}).json()
    assert answer["translatedText"] == "&lt;b&gt;"


@pytest.mark.parametrize(("number", "is_beside"), [(2, False), (600, True)])
def test_long_markup_is_parsed_and_divided_beside_the_event_loop(
    number: int, is_beside: bool, monkeypatch: pytest.MonkeyPatch
):
    model, found = Reverser(), set[bool]()

    def noted(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **settings: Any) -> Any:
            found.add(not is_in_event_loop())
            return work(*arguments, **settings)

        return run

    monkeypatch.setattr(service, "_read_markup", noted(service._read_markup))
    model.split = noted(model.split)  # type: ignore[method-assign]
    text = "<p>abc def ghi jkl</p>" * number
    answer = serve(model, limits=Limits(characters=50_000, work=50_000)).post(
        "/translate", json={"q": text, "format": "html", **PAIR}
    )
    assert (answer.status_code, found) == (200, {is_beside})


def test_lines_and_spaces_stay():
    answer = serve().post("/translate", json={"q": " abc\n\n  de\n", **PAIR}).json()
    assert answer["translatedText"] == " cba\n\n  ed\n"


def test_models_are_chained():
    client = serve(Reverser(("de", "en")), Reverser(("en", "zh")))
    assert client.post("/translate", json={"q": "abc", "source": "de", "target": "zh"}).json() == {
        "translatedText": "abc"
    }
    targets = {each["code"]: each["targets"] for each in client.get("/languages").json()}
    assert targets == {"de": ["en", "zh-Hans"], "en": ["zh-Hans"], "zh-Hans": []}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"source": "de", "target": "en"}, "Invalid request: missing q parameter"),
        ({"q": "a", "target": "en"}, "Invalid request: missing source parameter"),
        ({"q": "a", "source": "de"}, "Invalid request: missing target parameter"),
        ({"q": "a", "source": "de", "target": "zz"}, "zz is not supported"),
        ({"q": 7, **PAIR}, "Invalid request: q is neither a text nor a list of texts"),
        ({"q": ["a", 7], **PAIR}, "Invalid request: q is neither a text nor a list of texts"),
        ({"q": "a", "format": "pdf", **PAIR}, "Invalid request: format is neither text nor html"),
        ({"q": "a", "alternatives": -1, **PAIR}, "Invalid request: alternatives is not a whole number"),
        ({"q": "a", "alternatives": 10_000, **PAIR}, "Invalid request: at most 10 alternatives"),
        ({"q": "a" * 5001, **PAIR}, "Invalid request: request (5001) exceeds text limit (5000)"),
        ({"q": ["a" * 100] * 51, **PAIR}, "Invalid request: request (5100) exceeds text limit (5000)"),
        ({"q": "a" * 4000, "alternatives": 10, **PAIR}, "Invalid request: characters times outputs (44000)"),
    ],
)
def test_a_wrong_request_is_answered_in_libretranslates_words(fields: dict[str, object], error: str):
    answer = serve().post("/translate", json=fields)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(error)


def test_settings_are_those_of_the_server():
    settings = serve(keys=Keys(["k"])).get("/frontend/settings").json()
    assert settings["keyRequired"] is True
    assert settings["charLimit"] == 5000
    assert settings["language"]["target"] == {"code": "en", "name": "English"}


@pytest.mark.parametrize("name", ["api_key", "apiKey"])
def test_a_key_opens_the_server(name: str):
    client = serve(keys=Keys(["right", "other"]))
    wrong = client.post("/translate", json={"q": "abc", name: "righ", **PAIR})
    assert (wrong.status_code, wrong.json()) == (403, {"error": "Invalid API key"})
    assert client.post("/translate", json={"q": "abc", **PAIR}).status_code == 403
    assert client.post("/translate", data={"q": "abc", name: "right", **PAIR}).json() == {"translatedText": "cba"}
    header = {"Authorization": "DeepL-Auth-Key other"}
    assert client.post("/translate", json={"q": "abc", **PAIR}, headers=header).status_code == 200


def test_suggestions_are_stored(tmp_path: Path):
    fields = {"q": "abc", "s": "better", **PAIR}
    assert serve().post("/suggest", data=fields).status_code == 403
    path = tmp_path / "suggestions.jsonl"
    client = serve(suggestions=Suggestions(path))
    assert client.post("/suggest", data=fields).json() == {"success": True}
    assert '"s": "better", "source": "de", "target": "en"' in path.read_text("utf-8")


def test_a_suggestion_that_the_disk_has_no_room_for_is_refused_and_leaves_no_part_of_a_line(tmp_path: Path):
    path = tmp_path / "suggestions.jsonl"
    client = serve(suggestions=Suggestions(path))
    with disk_quota(20):
        answer = client.post("/suggest", data={"q": "abc", "s": "lost", **PAIR})
    assert (answer.status_code, answer.json()) == (403, {"error": "The suggestion cannot be written."})
    assert client.post("/suggest", data={"q": "abc", "s": "better", **PAIR}).json() == {"success": True}
    assert [json.loads(line)["s"] for line in path.read_text("utf-8").splitlines()] == ["better"]


def test_a_suggestion_corrects_the_model_where_the_server_takes_corrections(tmp_path: Path):
    path = tmp_path / "suggestions.jsonl"
    model = Reverser()
    client = serve(model, suggestions=Suggestions(path), takes_corrections=True)
    fields = {"q": " abc de. ", "s": " better\n", **PAIR}
    assert client.post("/suggest", data=fields).json() == {"success": True}
    assert model.corrections == {"abc de.": "better"}
    answer = client.post("/translate", json={"q": "Fed.\nabc de.", **PAIR}).json()
    assert answer == {"translatedText": ".deF\nbetter"}
    assert path.read_text("utf-8").count("\n") == 1
    detected = client.post("/suggest", data={"q": "x", "s": "y", "source": "auto", "target": "en"})
    assert (detected.status_code, model.corrections["x"]) == (200, "y")
    assert client.get("/frontend/settings").json()["suggestions"] is True


def test_corrections_need_no_file_of_suggestions():
    model = Reverser()
    assert serve(model, takes_corrections=True).post("/suggest", data={"q": "a", "s": "b", **PAIR}).status_code == 200
    assert model.corrections == {"a": "b"}


def test_a_correction_that_cannot_be_written_is_refused():
    class Full(Reverser):
        def correct(self, source: str, correction: str) -> None:
            raise ResourceError("corrections.jsonl: not written: No space left on device")

    answer = serve(Full(), takes_corrections=True).post("/suggest", data={"q": "a", "s": "b", **PAIR})
    assert (answer.status_code, answer.json()) == (403, {"error": "The corrections cannot be written."})


def test_a_refused_correction_is_not_stored(tmp_path: Path):
    path = tmp_path / "suggestions.jsonl"
    client = serve(suggestions=Suggestions(path), takes_corrections=True)
    assert client.post("/suggest", data={"q": "Abc. De.", "s": "b", **PAIR}).status_code == 400
    assert path.read_bytes() == b""


def test_a_full_file_does_not_stop_a_correction(tmp_path: Path):
    model = Reverser()
    client = serve(model, suggestions=Suggestions(tmp_path / "full.jsonl", most_bytes=1), takes_corrections=True)
    answer = client.post("/suggest", data={"q": "a", "s": "b", **PAIR})
    assert (answer.status_code, model.corrections) == (403, {"a": "b"})
    assert "corrected all the same" in answer.json()["error"]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"q": "Abc. De.", "s": "b"}, "correct one sentence at a time, not 2"),
        ({"q": " ", "s": "b"}, "correct one sentence at a time, not 0"),
        ({"q": "abc", "s": " "}, "the correction is blank"),
        ({"q": "abc", "s": "b", "target": "fr"}, "no model translates from de to fr in one step"),
    ],
)
def test_a_suggestion_that_is_no_correction_is_refused(fields: dict[str, str], complaint: str):
    models = Reverser(), Reverser(("en", "fr"))
    answer = serve(*models, takes_corrections=True).post("/suggest", data={**PAIR, **fields})
    assert answer.status_code == 400, answer.json()
    assert complaint in answer.json()["error"]
    assert models[0].corrections == models[1].corrections == {}
