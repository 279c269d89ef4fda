"""Running texts with the pronunciations of their words."""

import json
from pathlib import Path

import pytest

import heedful as package
from heedful.predictors.pronouncer import Pronouncer
from heedful.predictors.translator import Translator
from heedful.text.pronunciations import PronouncedText, PronouncedWord, Pronunciation
from tests.cli.command import heedful
from tests.cli.conftest import Trained


@pytest.fixture(scope="module")
def pronouncer(trained: Trained) -> Pronouncer:
    translator = package.load(trained.model)
    assert isinstance(translator, Translator)
    return Pronouncer(translator)


def test_words_are_replaced_and_all_else_stays():
    words = (PronouncedWord(1, 3, "hi", ("HH", "AY1"), 0.5), PronouncedWord(5, 7, "北京", (), 0.0))
    text = PronouncedText(" hi, 北京 4711!\t", words)
    assert text.shown(has_spaces=True) == " {HH AY1}, 北京 4711!\t"
    assert text.shown(has_spaces=False) == " HHAY1, 北京 4711!\t"


def test_words_are_those_of_the_model_and_of_the_lexicon(pronouncer: Pronouncer):
    known = {"cab": (Pronunciation(("K", "AE1", "B"), 1.0), Pronunciation(("K",), 1.0))}
    first, second = pronouncer.pronounce_texts(["Fade: CAB, 12 fade", "… 北京"], known)
    (title,), (lower,) = pronouncer.pronounce([pronouncer.reading("Fade"), "fade"])
    expected = [(0, 4, "Fade", title.phones), (6, 9, "CAB", ("K", "AE1", "B")), (14, 18, "fade", lower.phones)]
    assert [(one.start, one.end, one.word, one.phones) for one in first.words] == expected
    assert [one.probability for one in first.words] == pytest.approx([title.probability, 1.0, lower.probability])
    assert second.words == (PronouncedWord(2, 4, "北京", (), 0.0),)
    assert pronouncer.pronounce_texts([]) == []


def test_addresses_tags_and_placeholders_are_no_words(pronouncer: Pronouncer):
    text = "a <b>cab</b> at a.b@example.com or https://example.com/bead, {fade}, 4711"
    (spoken,) = pronouncer.pronounce_texts([text])
    assert [one.word for one in spoken.words] == ["a", "cab", "at", "or"]


def test_each_line_gives_a_line(trained: Trained, tmp_path: Path, pronouncer: Pronouncer):
    source, target, known = tmp_path / "in.txt", tmp_path / "out.txt", tmp_path / "known.dict"
    source.write_text("a cab, 北京\n\n4711!\nbead cab\n", "utf-8")
    known.write_text("CAB  K AE1 B\n", "utf-8")
    done = heedful("pronounce", trained.model, "-i", source, "-o", target, "--known", known)
    assert done.code == 0
    assert "1 word left as written, which the model cannot pronounce: 北京" in done.err
    texts = pronouncer.pronounce_texts(
        ["a cab, 北京", "", "4711!", "bead cab"], {"CAB": (Pronunciation(("K", "AE1", "B"), 1.0),)}
    )
    assert target.read_text("utf-8").splitlines() == [text.shown(pronouncer.has_spaces) for text in texts]
    done = heedful("pronounce", trained.model, "-i", source, "--known", known, "--format", "jsonl", "--quiet")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [row["text"] for row in rows] == ["a cab, 北京", "", "4711!", "bead cab"]
    assert rows[0]["words"][1] == {"start": 2, "end": 5, "word": "cab", "phones": ["K", "AE1", "B"], "probability": 1.0}
    assert rows[0]["words"][2]["phones"] == []
    assert rows[2] == {"text": "4711!", "pronounced": "4711!", "words": []}


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--known", "missing.dict", "a"], "missing.dict"), (["-i", "missing.txt"], "missing.txt")],
)
def test_what_does_not_fit_is_one_line(trained: Trained, options: list[str], message: str):
    done = heedful("pronounce", trained.model, *options)
    assert done.code == 2
    assert message in done.err
