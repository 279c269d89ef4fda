"""Seen sources: commonest targets, the choice by validation, and what is replaced."""

import json
from math import log
from pathlib import Path

import numpy as np
import pytest

from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.prepare import EvaluationSet
from heedful.engines.folder import open_folder
from heedful.predictors.seen_sources import ROLE, choose_seen, count_targets
from heedful.predictors.table import load
from heedful.predictors.translation import Alternative, Translation
from heedful.predictors.translator import Translator
from heedful.text.tokenizer import UnitTokenizer
from heedful.text.vocabulary import EOS, UNK, Vocabulary
from tests.cli.command import heedful
from tests.cli.conftest import SETTINGS

LETTERS = UnitTokenizer(Vocabulary.build(["abcdefOgo"]), "characters", "NFC")
PAIRS = [("og", "og"), ("og", "Og"), ("og", "og"), ("a", "b"), ("a", "c"), ("c", "?")]


def corpus_of(pairs: list[tuple[str, str]]) -> EncodedCorpus:
    sides = ([[*LETTERS.encode(pair[side]), EOS] for pair in pairs] for side in (0, 1))
    return EncodedCorpus(*map(EncodedSide.of, sides))


def test_the_commonest_target_of_each_source():
    assert UNK in LETTERS.encode("?")
    entries = count_targets(corpus_of(PAIRS), (LETTERS, LETTERS)).entries
    assert {source: (one.target, one.probability, one.num_links) for source, one in entries.items()} == {
        "og": ("og", 2 / 3, 2),
        "a": ("b", 0.5, 1),
    }


WORDS = [first + second for first in "abcd" for second in "abcdef"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seen")
    (folder / "tiny.toml").write_text(SETTINGS, encoding="utf-8")
    rows = "".join(f"{word}\t{word.upper()}\n" * 3 + f"{word}\tx\n" for word in WORDS)
    (folder / "train.tsv").write_text(rows, encoding="utf-8")
    (folder / "dev.tsv").write_text("".join(f"{word}\t{word.upper()}\n" for word in WORDS), encoding="utf-8")
    done = heedful(
        *("train", folder / "train.tsv", "--dev", folder / "dev.tsv", "--config", folder / "tiny.toml"),
        *("--out", folder / "m", "--threads", "1"),
    )
    assert done.code == 0, done.err
    figures = "of 24 validation sources seen in training the commonest targets have 100.0 % right"
    assert f"memory: used, 24 sources; {figures}, the model 0.0 %; without it: --no-memory" in done.err
    return folder / "m"


def test_seen_sources_have_their_targets_by_every_door(model: Path, tmp_path: Path):
    assert heedful("translate", model, "ab", "--quiet").out == "AB\n"
    alone = heedful("translate", model, "ab", "--quiet", "--no-memory").out
    assert alone != "AB\n"
    facts = json.loads(heedful("translate", model, "ab", "--quiet", "--format", "jsonl", "--align").out)
    assert (facts["text"], facts["unbiased"] + "\n", facts["alignment"]) == ("AB", alone, [[0, 0]])
    assert heedful("translate", model, "ab", "--quiet", "--ban", "AB").out == alone
    translator = load(model, kind=Translator)
    known, unknown = translator.translate(["ab", "ffff"])
    assert (known.text, known.log_prob) == ("AB", log(0.75))
    assert unknown == translator.translate(["ab", "ffff"], memory=False)[1]
    translator.correct("ab", "corrected")
    assert translator.translate(["ab"])[0].text == "corrected"
    assert heedful("correct", model, "--undo", "ab").code == 0
    packed = tmp_path / "packed"
    assert heedful("pack", model, "-o", packed).code == 0
    assert heedful("translate", packed, "ab", "--quiet").out == "AB\n"


def test_without_the_choice_of_validation_it_is_asked_for(model: Path, tmp_path: Path):
    folder = open_folder(model)
    corpus = EncodedCorpus.read(model / "run/data")
    translator = load(model, kind=Translator)
    tokenizers = translator.source_tokenizer, translator.target_tokenizer
    items = EvaluationSet(WORDS, [[word.upper()] for word in WORDS])

    def right(sources: object) -> list[Translation]:
        return [Translation(word, word.upper(), 0.0, 0.0, (Alternative("", 0.0, 0.0),)) for word in WORDS]

    before = (model / "heedful.json").read_bytes()
    assert choose_seen(folder, corpus, tokenizers, items, right).startswith("memory: not used; of 24")
    assert choose_seen(folder, corpus, tokenizers, items[:5], right) == ""
    assert (model / "heedful.json").read_bytes() == before
    bare = tmp_path / "bare"
    assert heedful("pack", model, "-o", bare).code == 0
    manifest = json.loads((bare / "heedful.json").read_text(encoding="utf-8"))
    assert ROLE in manifest
    assert np.all([name.startswith("seen-") == (name == manifest[ROLE]) for name in manifest["files"]])
