"""One text gives one translation, through whichever door it comes."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import heedful
from heedful.data.prepare import EvaluationSet
from heedful.engines.folder import open_folder
from heedful.engines.text_constraints import TextConstraints
from heedful.predictors.page_requests import PageRequests
from heedful.predictors.translator import Translator
from heedful.serving.app import make_app
from heedful.serving.catalog import Catalog
from heedful.serving.service import Service
from heedful.text.kept_places import Lifted
from tests.cli.command import heedful as command

TEXTS = [
    "Hund schläft hier. Katze läuft heute, siehe https://example.org/a.b. Frau lacht gern!",
    "FRAU WARTET DRAUSSEN.",
    "Mann lacht heute 🐶 mit {name} und 48213.",
    "...",
    "4711",
    "- Kind schläft. - Kind lacht",
    "  Mann wartet hier  ",
    "Hund schläft hier und Katze läuft heute und Frau lacht gern, Kind schläft draußen und Mann wartet.",
    '(Kind schläft.) "Hund lacht", *** Mann ***',
    "hund wartet draussen bei %s.",
    "Kind Lacht Heute Gern",
]


def test_every_door_gives_the_same_translation(sentences: Path, tmp_path: Path):
    translator = heedful.load(sentences)
    assert isinstance(translator, Translator)
    expected = [one.text for one in translator.translate(TEXTS)]
    for kept in ("https://example.org/a.b", "🐶", "{name}", "48213"):
        assert sum(text.count(kept) for text in expected) == 1
    assert expected[1].isupper()
    assert expected[3:5] == TEXTS[3:5]
    usual = translator.translate(["Hund wartet draußen bei %s.", "Kind lacht heute gern"])
    assert expected[-2:] == [one.text for one in usual]
    assert len(translator.translate(TEXTS)[0].segments) == 3

    items = EvaluationSet(TEXTS, [[text] for text in expected])
    assert translator.measure(items, segments="auto").outputs == expected

    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    done = command("translate", sentences, "-i", source, "-o", target)
    assert done.code == 0
    assert target.read_text("utf-8").splitlines() == expected

    assert [one["translation_text"] for one in heedful.pipeline("translation", sentences)(TEXTS)] == expected  # type: ignore[index]

    client = TestClient(make_app(Service(Catalog([translator]))), raise_server_exceptions=False)
    answer = client.post("/translate", json={"q": TEXTS, "source": "de", "target": "en"})
    assert answer.json()["translatedText"] == expected
    file = {"file": ("in.txt", source.read_bytes(), "text/plain")}
    url = client.post("/translate_file", data={"source": "de", "target": "en"}, files=file).json()["translatedFileUrl"]
    written = client.get(url.partition("testserver")[2]).content.decode()
    assert written.splitlines() == expected

    document = tmp_path / "translated.txt"
    assert command("translate", sentences, source, "-o", document).code == 0
    assert document.read_text("utf-8").splitlines() == expected

    scored = tmp_path / "scored.tsv"
    scored.write_text(
        "".join(f"{text.strip()}\t{output.strip()}\n" for text, output in zip(TEXTS, expected, strict=True)), "utf-8"
    )
    exact: list[float] = []
    for options in (["--segments", "auto"], []):
        measured = command("evaluate", sentences, scored, "--metrics", "exact_match", "--format", "json", *options)
        exact.append(json.loads(measured.out)["results"][0]["score"])
    assert exact[0] == 100 > exact[1]  # a paragraph that is read at once is another text

    requests = PageRequests({"m": translator})
    for text, output in zip(TEXTS, expected, strict=True):
        view = requests.view({"text": text, "beam": translator.search.beam})
        assert (
            passage_text(view["passage"]).strip() if view["passage"] else view["outputs"][0]["text"]
        ) == output.strip()


@pytest.mark.parametrize("is_prefix", [True, False])
def test_what_stays_is_kept_in_a_text_with_a_prefix_or_a_required_phrase(is_prefix: bool, sentences: Path):
    translator = heedful.load(sentences, kind=Translator)
    word = translator.translate(["Hund schläft hier."])[0].text.split()[0].strip(".")
    given = TextConstraints(prefix=word) if is_prefix else TextConstraints(required=[word])
    (one,) = translator.translate(["Hund schläft hier. Siehe {name} 🐶."], constraints=given)
    assert (one.text.count("{name}"), one.text.count("🐶")) == (1, 1)
    assert word in one.text
    assert len(one.segments) == 2
    assert one.text.startswith(word)


def test_every_door_keeps_what_markup_excludes(sentences: Path, tmp_path: Path):
    translator = heedful.load(sentences, kind=Translator)
    plain = translator.translate(["Hund schläft hier."])[0].text
    client = TestClient(make_app(Service(Catalog([translator]))), raise_server_exceptions=False)
    for kept in ("Große Straße", "x = 1. Und"):
        for opening, closing in (
            ("<code>", "</code>"),
            ('<b translate="no">', "</b>"),
            ("<i class='notranslate'>", "</i>"),
        ):
            marked = f"Hund {opening}{kept}{closing} schläft hier."
            asked = {"q": marked, "source": "de", "target": "en", "format": "html"}
            text = client.post("/translate", json=asked).json()["translatedText"]
            assert text.count(f"{opening}{kept}{closing}") == 1
            assert "".join(text.replace(f"{opening}{kept}{closing}", "").split()) == "".join(plain.split())
            fields = {"text": [marked], "target_lang": "EN", "source_lang": "DE", "tag_handling": "xml"}
            answer = client.post("/v2/translate", json=fields | {"ignore_tags": ["code", "b", "i"]}).json()
            assert answer["translations"][0]["text"] == text
        source, target = tmp_path / "in.md", tmp_path / "out.md"
        source.write_text(f"Hund `{kept}` schläft hier.\n", "utf-8")
        assert command("translate", sentences, source, "-o", target).code == 0
        written = target.read_text("utf-8")
        assert written.count(f"`{kept}`") == 1
        assert "".join(written.replace(f"`{kept}`", "").split()) == "".join(plain.split())


WRAPPED = """Hund schläft hier wie Katze läuft heute wie Frau
lacht gern wie Mann wartet draußen. Kind schläft
hier.

Frau wartet.
"""


def test_every_door_joins_the_lines_of_hard_wrapped_text(sentences: Path, tmp_path: Path):
    translator = heedful.load(sentences, kind=Translator)
    (one,) = translator.translate([WRAPPED])
    sources = [part.segment.source for part in one.segments]
    assert sources == [*WRAPPED.partition(" Kind")[0:1], "Kind schläft\nhier.", "Frau wartet."]
    assert one.text.count("\n") == 3

    assert command("translate", sentences, WRAPPED).out == one.text + "\n"
    lines = command("translate", sentences, WRAPPED, "--segments", "line").out.splitlines()
    assert len(lines) == len(WRAPPED.splitlines()) + 1
    nbest = command("translate", sentences, WRAPPED, "--nbest", "2").out.splitlines()
    assert all(line.startswith("0 ||| ") for line in nbest)
    (facts,) = map(json.loads, command("translate", sentences, WRAPPED, "--format", "jsonl").out.splitlines())
    assert (facts["source"], facts["text"]) == (WRAPPED, one.text)

    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text(WRAPPED, "utf-8")
    assert command("translate", sentences, source, "-o", target).code == 0
    assert target.read_text("utf-8") == one.text

    assert heedful.pipeline("translation", sentences)(WRAPPED) == [{"translation_text": one.text}]
    client = TestClient(make_app(Service(Catalog([translator]))), raise_server_exceptions=False)
    answer = client.post("/translate", json={"q": WRAPPED, "source": "de", "target": "en"})
    assert answer.json()["translatedText"] == one.text


def passage_text(passage: dict[str, Any]) -> str:
    first, *others = passage["outputLayout"]
    return first + "".join(part["output"] + after for part, after in zip(passage["parts"], others, strict=True))


def test_the_page_shows_the_segments_and_kept_spans_of_a_passage(sentences: Path):
    translator = heedful.load(sentences)
    assert isinstance(translator, Translator)
    requests = PageRequests({"m": translator})
    text = "Hund schläft hier.\nFrau lacht gern, siehe <b>https://example.org/a.b</b>!\n\n4711\n"
    passage = requests.view({"text": text})["passage"]
    sources = ["Hund schläft hier.", "Frau lacht gern, siehe <b>https://example.org/a.b</b>!", "4711"]
    assert [part["source"] for part in passage["parts"]] == sources
    assert passage["sourceLayout"] == ["", "\n", "\n\n", "\n"]
    part = passage["parts"][1]
    for side, spans in (("source", "kept"), ("output", "outputKept")):
        found = {(part[side][start:end], kind) for start, end, kind in part[spans]}
        assert found == {("<b>", "tag"), ("https://example.org/a.b", "url"), ("</b>", "tag")}
    assert "example" not in part["reading"]
    assert passage["parts"][2] == {
        "source": "4711",
        "output": "4711",
        "kept": [[0, 4, "number"]],
        "outputKept": [[0, 4, "number"]],
        "reading": "",
        "fault": "",
    }
    views = [requests.view({"text": text, "segment": segment}) for segment in range(5)]
    readings = ["Hund schläft hier.", part["reading"], "", "", ""]
    assert [view["source"]["text"] for view in views] == readings  # beyond the last segment is the last
    assert [bool(view["outputs"]) for view in views] == [True, True, False, False, False]


def test_a_trained_model_cuts_sentences_that_are_longer_than_its_sources(sentences: Path):
    """The usual length of sources reaches the model's folder; without it, any sentence is read whole."""
    usual = open_folder(sentences).facts["usual_characters"]
    clauses = [", ".join(["Hund schläft hier"] * number) + "." for number in (2, usual // 10)]
    clauses.append(clauses[0].replace(",", f" https://example.org/{'a' * usual},"))  # what stays is not read
    words = " ".join(["Hund schläft hier"] * (usual // 4))
    translator = heedful.load(sentences, kind=Translator)
    short, others, kept = (translator.split(text).segments for text in clauses)
    few, many = (translator.split(text).segments for text in (words[: 2 * usual], words))
    assert len(few) == 1
    assert len(many) > 1
    assert all(len(one.source) <= 3 * usual for one in many)
    assert len(clauses[0]) < usual < len(clauses[1])
    assert len(short) == len(kept) == 1
    assert len(others) > 1


def test_every_door_tells_of_spans_that_are_lost(sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def lose(lifted: Lifted, output: str, links: object) -> tuple[str, list[int]]:
        del lifted, links
        return output, [*range(len(output))]

    monkeypatch.setattr("heedful.predictors.segment_decoding.put_back", lose)
    text = "Hund schläft hier. Frau wartet bei {name}."
    translator = heedful.load(sentences)
    assert isinstance(translator, Translator)
    assert [one.lost for one in translator.translate([text, "Hund schläft."])] == [("{name}",), ()]

    done = command("translate", sentences, "--format", "jsonl", text)
    facts = json.loads(done.out)
    assert (facts["lost"], [one.get("lost") for one in facts["segments"]]) == (["{name}"], [None, ["{name}"]])
    assert "line 1: the output lacks {name}, which should stay as it is" in done.err

    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text(text, "utf-8")
    assert "lost: 1 span that should stay" in command("translate", sentences, source, "-o", target).err

    client = TestClient(make_app(Service(Catalog([translator]))), raise_server_exceptions=False)
    fields = {"source": "de", "target": "en", "faults": "true"}
    assert client.post("/translate", data={"q": text, **fields}).json()["faults"] == "lost"
    file = {"file": ("a.txt", source.read_bytes(), "text/plain")}
    assert client.post("/translate_file", data=fields, files=file).json()["faults"] == {"lost": 1}
    del fields["faults"]
    assert "faults" not in client.post("/translate_file", data=fields, files=file).json()
