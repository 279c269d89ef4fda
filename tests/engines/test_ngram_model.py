"""Linear model of n-grams: its scores, its file, and long texts."""

from pathlib import Path

import numpy as np
import pytest

from heedful.data.label_kinds import mixture, normalised
from heedful.engines import ngram_model
from heedful.engines.ngram_model import NgramModel, text_slices
from heedful.errors import FileRefused, NewerFormat
from heedful.files.formats import NGRAMS_FORMAT
from heedful.tasks.ngram_fit import build_table
from heedful.text.ngrams import NgramSizes, text_ngrams

TEXTS = ["a good room", "a bad room", "good, good staff", "noise", "", "bad bad bad"]


def model(num_labels: int = 3) -> NgramModel:
    table, _ = build_table(TEXTS, num_labels, NgramSizes())
    generator = np.random.default_rng(1)
    weights = generator.normal(size=(len(table.hashes), num_labels)).astype(np.float16)
    return NgramModel(table, weights, generator.normal(size=num_labels).astype(np.float32))


def scores_by_hand(one: NgramModel, text: str) -> np.ndarray:
    total = one.bias.astype(np.float64)
    places = {value: index for index, value in enumerate(one.table.hashes.tolist())}
    for kind in text_ngrams([text], one.table.sizes):
        known = [places[value] for value in kind.hashes.tolist() if value in places]
        values = {at: (1.0 + np.log(known.count(at))) * float(one.table.rarity[at]) for at in known}
        norm = np.sqrt(sum(value * value for value in values.values()))
        total = total + sum((value / norm * one.weights[at].astype(np.float64) for at, value in values.items()))
    return total


def test_scores_are_the_formula(monkeypatch: pytest.MonkeyPatch):
    one = model()
    texts = [*TEXTS, "unknown words", "A GOOD room"]
    wanted = np.stack([scores_by_hand(one, text) for text in texts])
    np.testing.assert_allclose(one.scores(texts), wanted, atol=1e-5)
    monkeypatch.setattr(ngram_model, "_GATHERED", 7)  # a few rows at a time
    np.testing.assert_allclose(one.scores(texts), wanted, atol=1e-5)
    assert one.scores([]).shape == (0, 3)


def test_a_long_text_in_parts_has_the_same_words(monkeypatch: pytest.MonkeyPatch):
    one = model()
    text = "a good room and a bad room " * 40
    whole = normalised("one", one.scores([text, "noise"]))
    monkeypatch.setattr(ngram_model, "_SLICE_CHARACTERS", 200)
    np.testing.assert_allclose(normalised("one", one.scores([text, "noise"])), whole, atol=0.15)


def test_a_file_gives_the_same_model(tmp_path: Path):
    one = model()
    one.save(tmp_path / "ngrams.safetensors")
    one.save(tmp_path / "ngrams.safetensors")  # in the place of the first
    other = NgramModel.load(tmp_path / "ngrams.safetensors")
    assert np.array_equal(other.scores(TEXTS), one.scores(TEXTS))
    assert other.table.sizes == one.table.sizes


def test_damaged_and_newer_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "ngrams.safetensors"
    model().save(path)
    content = path.read_bytes()
    for damage in (b"", content[: len(content) // 2], b"x" + content[1:]):
        path.write_bytes(damage)
        with pytest.raises(FileRefused, match="damaged"):
            NgramModel.load(path)
    monkeypatch.setattr(ngram_model, "NGRAMS_FORMAT", type(NGRAMS_FORMAT)("n-gram model", 2, unmarked=0))
    path.unlink()
    model().save(path)
    monkeypatch.undo()
    with pytest.raises(NewerFormat, match="newer heedful"):
        NgramModel.load(path)


def test_a_mixture_is_the_geometric_mean():
    one, other = (normalised("one", np.array([row], dtype=np.float32)) for row in ([0.0, 2.0], [1.0, -1.0]))
    assert np.allclose(mixture("one", one, other, 1.0), one, atol=1e-6)
    assert np.allclose(mixture("one", one, other, 0.0), other, atol=1e-6)
    shares = np.exp(mixture("one", one, other, 0.25))
    product = np.exp(one) ** 0.25 * np.exp(other) ** 0.75
    np.testing.assert_allclose(shares, product / product.sum(), rtol=1e-5)


def test_short_texts_are_taken_together():
    (part,) = text_slices(["a short text"] * 100 + [""])
    assert len(part[1]) == 101
    assert part[0].tolist() == [*range(101)]
