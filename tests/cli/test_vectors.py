import builtins
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from heedful.errors import install_command
from heedful.text.vectors import read_vectors
from tests.cli.command import heedful
from tests.thorough import thorough

SENTENCES = ["the cat sits here", "the dog sits there", "a cat sees the dog", "a dog sees a cat here"] * 10
SIZES = ["embedding_size", "hidden_size", "alignment_size", "maxout_size"]
SETTINGS = [
    "text.source_units=words",
    "text.target_units=words",
    "text.shared=false",
    "model.kind=rnnsearch",
    *(f"model.{size}=6" for size in SIZES),
    "training.max_steps=4",
    "training.export=false",
    "training.validate_every=2",
    "training.precision=float32",
    "training.average=0",
]
SET = [word for one in SETTINGS for word in ("--set", one)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in SENTENCES).encode()))
    return path


def test_without_gensim_the_install_line_is_printed(corpus: Path, monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "gensim":
            raise ModuleNotFoundError("No module named 'gensim'", name="gensim")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    done = heedful("vectors", corpus, "--out", corpus.with_name("out.vec"))
    assert (done.code, done.out) == (6, "")
    assert done.errors == [f"heedful: error: training word vectors needs gensim: {install_command('vectors')}"]
    assert not corpus.with_name("out.vec").exists()


def test_what_is_missing_is_told(corpus: Path):
    assert heedful("vectors", corpus).code == 2
    done = heedful("vectors", corpus.with_name("text.txt"), "--out", corpus.with_name("out.vec"))
    assert (done.code, len(done.errors)) == (2, 1)
    assert "no such file" in done.errors[0]


class FakeWord2Vec:
    """Stands in for gensim's: counts words and gives each a vector made of its place."""

    corpus_count = 0

    def __init__(self, **options: Any) -> None:
        self.options = options
        FakeWord2Vec.last = self

    def build_vocab(self, sentences: Any) -> None:
        self.sentences = [list(words) for words in sentences]
        words = sorted({word for sentence in self.sentences for word in sentence})
        words = words if self.options["min_count"] < 100 else []
        size = self.options["vector_size"]

        class Vectors:
            index_to_key = words
            vectors = np.arange(len(words) * size, dtype=np.float32).reshape(len(words), size)

            def __len__(self) -> int:
                return len(words)

        self.wv = Vectors()

    def train(self, sentences: Any, **options: Any) -> None:
        assert [list(words) for words in sentences] == self.sentences, "read afresh"
        self.options |= options


FakeWord2Vec.last = None  # type: ignore[attr-defined]


@pytest.fixture
def gensim(monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    package, models = types.ModuleType("gensim"), types.ModuleType("gensim.models")
    models.Word2Vec = FakeWord2Vec  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gensim", package)
    monkeypatch.setitem(sys.modules, "gensim.models", models)


def test_what_is_asked_for_reaches_gensim(corpus: Path, gensim: None, tmp_path: Path):
    out = tmp_path / "out.vec"
    words = ("--size", 7, "--method", "cbow", "--window", 3, "--min-count", 2, "--epochs", 9, "--seed", 4)
    done = heedful("vectors", corpus, "-o", out, *words)
    assert done.code == 0, done.err
    assert done.err.startswith(f"{out}: 8 words, 7 numbers each, in ")
    asked = FakeWord2Vec.last.options  # type: ignore[attr-defined]
    assert asked == {
        "vector_size": 7,
        "window": 3,
        "min_count": 2,
        "sg": 0,
        "negative": 5,
        "epochs": 9,
        "seed": 4,
        "workers": 1,
        "total_examples": 0,
    }
    assert read_vectors(out, ["cat"]).matrix.shape == (1, 7)
    assert heedful("vectors", corpus, "-o", out, "--quiet").err == ""
    assert FakeWord2Vec.last.options["sg"] == 1  # type: ignore[attr-defined]
    done = heedful("vectors", corpus, "-o", out, "--min-count", 100)
    assert done.code == 2
    assert "no word occurs 100 times" in done.errors[0]


def test_a_column_may_be_read_and_text_is_normalized(gensim: None, tmp_path: Path):
    data, out = tmp_path / "pairs.tsv", tmp_path / "out.vec"
    data.write_bytes("eins  zwei\tcafe\u0301 one\n\ndrei\ttwo\n".encode())
    assert heedful("vectors", data, "-o", out, "--column", 2, "--min-count", 1).code == 0
    assert FakeWord2Vec.last.sentences == [["café", "one"], ["two"]]  # type: ignore[attr-defined]
    assert heedful("vectors", data, data, "-o", out, "--column", 1, "--min-count", 1).code == 0
    assert FakeWord2Vec.last.sentences == [["eins", "zwei"], ["drei"]] * 2  # type: ignore[attr-defined]
    done = heedful("vectors", data, "-o", out, "--column", 3)
    assert done.code == 2
    assert f"{data}:1: 2 columns; expected at least 3" in done.errors[0]


def test_gensim_itself(corpus: Path, tmp_path: Path):
    pytest.importorskip("gensim")
    out = tmp_path / "out.vec"
    assert heedful("vectors", corpus, "-o", out, "--size", 6, "--min-count", 1).code == 0
    first = out.read_bytes()
    assert heedful("vectors", corpus, "-o", out, "--size", 6, "--min-count", 1).code == 0
    assert out.read_bytes() == first
    assert read_vectors(out, ["cat", "dog"]).num_read == 8


# ----------------------------------------------------------------------------------------- models that begin with them


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    rows = {f"{line} {number}": f"{line} {number}".upper() for line in SENTENCES[:4] for number in range(10)}
    path.write_bytes("".join(f"{source}\t{target}\n" for source, target in rows.items()).encode())
    return path


def write_vectors(path: Path, words: str, size: int = 6) -> Path:
    numbers = np.random.default_rng(0).normal(0, 1, (len(words.split()), size))
    rows = [f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words.split(), numbers, strict=True)]
    path.write_bytes("".join(rows).encode())
    return path


def weights(model: Path) -> dict[str, torch.Tensor]:
    return load_file(next(model.glob("model-*.safetensors")))


@thorough
def test_training_reports_coverage_and_frozen_vectors_stay(pairs: Path, tmp_path: Path):
    vectors = write_vectors(tmp_path / "my.vec", "the cat dog Sits zebra")
    model = tmp_path / "frozen.model"
    command = ("train", pairs, "--out", model, *SET, "--set", f"text.source_vectors={vectors}")
    done = heedful(*command, "--set", "text.vectors=frozen")
    assert done.code == 0, done.err
    line = next(line for line in done.err.split("\n") if "source vectors" in line)
    assert line.startswith("source vectors: my.vec, frozen: vectors for 3 of ")
    assert "1) by another case; without: " in line
    assert line.removeprefix("source vectors: ") in heedful("info", model).out
    table = weights(model)["source_embedding.weight"].numpy()
    tokens = json.loads((model / "tokenizer-source.json").read_bytes())["tokens"]
    wanted = read_vectors(vectors, ["cat", "dog", "the", "Sits"])
    rows = np.stack([table[tokens.index(word.lower())] for word in wanted.words])
    factors = rows / wanted.matrix
    assert factors == pytest.approx(np.full_like(factors, factors[0, 0]), rel=1e-4)
    tuned = tmp_path / "tuned.model"
    assert heedful("train", pairs, "--out", tuned, *command[4:]).code == 0
    assert not np.allclose(weights(tuned)["source_embedding.weight"].numpy(), table)
    vectors.unlink()  # the model is whole without it
    assert heedful("translate", model, "the cat").code == 0
    assert heedful(*command, "--set", "text.vectors=tuned").code == 2  # a run with other settings


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        (b"the 1 2 3 4 5\n", [], "has vectors of 5 numbers, the model's embedding has 6"),
        (b"the 1 2 3 4 5 x\n", [], "my.vec:1"),
        (b"the 1 2 3 4 5 6\ncat 1 2 3\n", [], "my.vec:2: 3 numbers after the word; expected 6"),
        (b"zebra 1 2 3 4 5 6\n", [], "my.vec: none of "),
        (b"", [], "my.vec"),
        (b"PK\x03\x04", [], "a zip archive"),
        (b"the 1 2 3 4 5 6\n", ["--set", "text.source_units=pieces"], "pieces have no vectors"),
        (None, [], "no such file"),
    ],
)
def test_broken_vectors_are_told_in_one_line(
    pairs: Path, tmp_path: Path, content: bytes | None, settings: list[str], message: str
):
    vectors = tmp_path / "my.vec"
    if content is not None:
        vectors.write_bytes(content)
    model = tmp_path / "broken.model"
    done = heedful("train", pairs, "--out", model, *SET, "--set", f"text.source_vectors={vectors}", *settings)
    assert (done.code, len(done.errors)) == (2, 1), done.err
    assert message in done.errors[0]
    assert not (model / "heedful.json").exists()
