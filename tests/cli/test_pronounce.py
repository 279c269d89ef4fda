"""Running texts with the pronunciations of their words."""

import json
from collections.abc import Iterator
from math import log
from pathlib import Path
from typing import cast

import pytest

import heedful as package
from heedful.cli import pronounce
from heedful.predictors.form_reader import FormReader
from heedful.predictors.pronouncer import Pronouncer
from heedful.predictors.translation import Alternative, Translation
from heedful.predictors.translator import Translator
from heedful.search.config import SearchConfig
from heedful.text import pronunciations
from heedful.text.column_tokenizer import ColumnTokenizer
from heedful.text.columns import split_columns
from heedful.text.pronunciations import PronouncedText, PronouncedWord, Pronunciation
from heedful.text.vocabulary import UNK
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


class Sure:
    """Model from written forms to words, sure of some."""

    def __init__(self, pronouncer: Pronouncer, readings: dict[str, tuple[str, float]]) -> None:
        self.search = pronouncer.translator.search
        self.source_tokenizer = self
        self._readings = readings

    def encode(self, form: str) -> list[int]:
        return [9] if form in self._readings else [UNK]

    def stream(self, forms: list[str], search: SearchConfig, segments: None) -> Iterator[Translation]:
        for form in forms:
            text, probability = self._readings[form]
            best = Alternative(text, log(probability), log(probability))
            yield Translation(form, text, best.log_prob, best.score, (best,))


def test_numbers_are_read_and_pronounced(pronouncer: Pronouncer):
    sure = Sure(pronouncer, {"12": ("bead cab", 0.9), "Dr.": ("fade", 0.4), "7": ("北京", 0.9)})
    reader = FormReader(cast("Translator", sure))
    known = {word: (Pronunciation((word.upper(),), 1.0),) for word in ("bead", "cab", "a")}
    (text,) = pronouncer.pronounce_texts(["a 12, Dr. 7 8 a"], known, reader)
    words = [(one.start, one.end, one.word, one.phones) for one in text.words]
    assert words == [
        (0, 1, "a", ("A",)),
        (2, 4, "bead", ("BEAD",)),
        (2, 4, "cab", ("CAB",)),
        (6, 9, "Dr.", ()),  # the reader is not sure
        (10, 11, "北京", ()),  # the model cannot pronounce it
        (12, 13, "8", ()),  # the reader does not know it
        (14, 15, "a", ("A",)),
    ]
    assert text.shown(has_spaces=True) == "{A} {BEAD} {CAB}, Dr. 7 8 {A}"
    assert text.shown(has_spaces=False) == "A BEAD CAB, Dr. 7 8 A"


class Heteronyms:
    """Model of a word and its sentence, which says the word backwards after "had"."""

    def __init__(self, pronouncer: Pronouncer, max_tokens: int) -> None:
        inner = pronouncer.translator.source_tokenizer
        self.source_tokenizer = ColumnTokenizer(inner, ("text", "text"), ())
        self.target_tokenizer = pronouncer.translator.target_tokenizer
        self.text = pronouncer.translator.text.model_copy(update={"max_tokens": max_tokens, "target_units": "words"})
        self.search = pronouncer.translator.search
        self.sources: list[str] = []

    def stream(self, sources: Iterator[str], search: SearchConfig, segments: None) -> Iterator[Translation]:
        for source in sources:
            self.sources.append(source)
            word, sentence = split_columns(source)
            best = Alternative(" ".join(word[::-1] if "fed" in sentence else word), log(0.9), log(0.9))
            yield Translation(source, best.text, best.log_prob, best.score, (best,))


def test_a_word_has_a_pronunciation_for_each_sentence(pronouncer: Pronouncer):
    model = Heteronyms(pronouncer, 40)
    texts = ["Abc dad. Abc | fed\tadd? abc", "abc", "cab " * 10 + "abc fed" + " cab" * 10]
    spoken = Pronouncer(cast("Translator", model)).pronounce_texts(texts, {"cab": (Pronunciation(("K",), 1.0),)})
    said = [["".join(one.phones) for one in text.words] for text in spoken]
    assert said[:2] == [["Abc", "dad", "cbA", "def", "dda", "cba"], ["abc"]]
    assert [one for one in said[2] if one != "K"] == ["cba", "def"]
    assert {"Abc | Abc dad.", "Abc | Abc fed add? abc", "abc | abc"} <= {*model.sources}
    assert len(model.sources) == len({*model.sources})
    assert all(len(source) <= 41 for source in model.sources)  # the separator is one token


def test_numbers_are_read_by_a_model(trained: Trained):
    done = heedful("pronounce", trained.model, "--readings", trained.model, "a 12")
    assert done.code == 0, done.err
    assert done.out.endswith(" 12\n")
    assert "1 word left as written, which the model cannot pronounce: 12" in done.err


def test_what_jieba_would_tell_apart_is_said(trained: Trained, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("jieba")
    assert "heedful[phones]" not in heedful("pronounce", trained.model, "a 北京").err
    for module in (pronounce, pronunciations):
        monkeypatch.setattr(module, "tells_words_apart", lambda: False)
    assert "pip install 'heedful[phones]' tells words apart" in heedful("pronounce", trained.model, "a 北京").err
    assert "heedful[phones]" not in heedful("pronounce", trained.model, "a cab").err


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
    [
        (["--known", "missing.dict", "a"], "missing.dict"),
        (["--readings", "missing.model", "a"], "missing.model"),
        (["-i", "missing.txt"], "missing.txt"),
    ],
)
def test_what_does_not_fit_is_one_line(trained: Trained, options: list[str], message: str):
    done = heedful("pronounce", trained.model, *options)
    assert done.code == 2
    assert message in done.err
