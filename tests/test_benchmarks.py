"""Benchmarks count what they say they count, and run."""

import gzip
import json
import math
import random
import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from heedful.models.table import PRESETS
from tests.architecture.package import ROOT


@pytest.fixture(scope="module")
def complexity() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "complexity.py"))


@pytest.mark.parametrize("length", [1, 2, 3, 5, 6, 17, 18, 33, 129])
def test_paths_are_those_of_the_table(complexity: dict[str, Any], length: int):
    """Vaswani et al. 2017, table 1, with the exact numbers behind its O()."""
    torch.manual_seed(1)
    reach, half = complexity["REACH"], complexity["WIDTH"] // 2
    wanted = {
        "self-attention": 1,
        "recurrent": length,
        "convolutional": max(1, math.ceil((length - 1) / half)),
        "restricted": max(1, math.ceil((length - 1) / reach)),
    }
    found = {kind.name: complexity["path_length"](kind.rounds(4), length) for kind in complexity["KINDS"]}
    assert found == wanted
    num_layers = next(n for n in range(1, 99) if complexity["WIDTH"] ** n >= length)
    assert complexity["path_length"](complexity["dilated"](4), length) == num_layers


def test_no_path_is_no_length(complexity: dict[str, Any]):
    def backward_only(inputs: torch.Tensor, states: torch.Tensor, number: int) -> torch.Tensor:
        return states + states.roll(-1, 0) * torch.tensor([1.0] * (len(states) - 1) + [0.0])[:, None]

    assert complexity["path_length"](backward_only, 5, most=20) == 0

    def forward_only(inputs: torch.Tensor, states: torch.Tensor, number: int) -> torch.Tensor:
        return torch.cat((states[:1], states[1:] + states[:-1]))

    assert complexity["path_length"](forward_only, 5, most=20) == 4
    assert complexity["path_length"](forward_only, 5, most=3) == 0


def test_depth_is_the_longest_chain(complexity: dict[str, Any]):
    start = torch.ones(1, requires_grad=True)
    short, long = start * 2, start
    for _ in range(5):
        long = long * 3
    depth = complexity["graph_depth"]
    assert depth(short) == 2  # the leaf itself counts once
    assert depth(long) == 6
    assert depth(short + long) == 7
    deep = start
    for _ in range(5000):
        deep = deep + start
    assert depth(deep) == 5001


def test_only_recurrent_layers_grow_deeper(complexity: dict[str, Any]):
    for kind in complexity["KINDS"]:
        layer = kind.make(8)
        few, many = (complexity["graph_depth"](layer(torch.randn(1, n, 8, requires_grad=True))) for n in (32, 64))
        assert (many - few >= 32) == (kind.name == "recurrent"), kind.name
        assert (many == few) == (kind.name != "recurrent"), kind.name


def test_exponents_are_found_again(complexity: dict[str, Any]):
    points = [(n, d, 3e-9 * n**2 * d**0.5) for n in (8, 16, 64) for d in (4, 8)]
    assert complexity["fitted_exponents"](points) == pytest.approx((2.0, 0.5))


def test_without_a_gpu_one_line_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("sys.argv", ["gpu.py"])
    gpu = runpy.run_path(str(ROOT / "benchmarks" / "gpu.py"))
    gpu["main"]()
    assert capsys.readouterr().out == "nothing timed: no CUDA device\n"
    # An H200 at 1.98 GHz: 2^30 exponentials with a reciprocal each keep its special units busy for 257 microseconds.
    cycles = 132 * 1.98e9
    units = gpu["Units"](128 * cycles, 16 * cycles, 1.0)
    assert gpu["floor_seconds"](2.0**30, 2.0, 1.0, units) == pytest.approx(257e-6, abs=1e-6)
    assert gpu["floor_seconds"](2.0**30, 6.0, 0.5, units) == pytest.approx(193e-6, abs=1e-6)
    assert len(gpu["GRID"]) == len({*gpu["GRID"]}) == 40


@pytest.mark.parametrize("has_triton", [True, False])
def test_every_section_for_a_gpu_runs_small_on_a_cpu(
    has_triton: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """All sections run small, those of Triton where its interpreter is installed; a failure gives an exit code."""
    gpu = runpy.run_path(str(ROOT / "benchmarks" / "gpu.py"))
    monkeypatch.setenv("TRITON_INTERPRET", "0")  # given back afterwards
    path = tmp_path / "rows.json"
    sections = "memory,decoding,pairs,units" if has_triton else "additive,memory"
    if not has_triton:
        monkeypatch.setattr(gpu["importlib"].util, "find_spec", lambda name: None)
    monkeypatch.setattr("sys.argv", ["gpu.py", "--tiny", "--only", sections, "--json", str(path)])
    gpu["main"]()
    said = capsys.readouterr().out
    if not has_triton:
        assert said.count("left out: Triton is not installed") == 2
        return
    rows = gpu["earlier_rows"](path)
    assert "decoding, beam 5, 2 sentences" in rows
    assert any(name.startswith("memory") for name in rows) != ("memory: left out: Triton" in said)
    monkeypatch.setattr("sys.argv", ["gpu.py", "--tiny", "--only", "decoding", "--compare", str(path)])
    gpu["main"]()
    assert capsys.readouterr().out.count("; was ") == 2
    monkeypatch.setitem(gpu["rows"].__globals__, "decoding_rows", lambda setting: 1 / 0)
    with pytest.raises(SystemExit, match="failed: decoding"):
        gpu["main"]()


def test_rows_of_an_earlier_run_are_read_or_refused(tmp_path: Path):
    gpu = runpy.run_path(str(ROOT / "benchmarks" / "gpu.py"))
    row = gpu["Row"]("additive scores", "<= 160 us", 18.1, "us")
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"rows": [row._asdict()]}), encoding="utf-8")
    assert gpu["earlier_rows"](path) == {"additive scores": 18.1}
    for text in ("", "[]", '{"rows": [{"what": "x"}]}', '{"rows": 3}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SystemExit, match="not the --json of an earlier run"):
            gpu["earlier_rows"](path)


def test_a_step_hands_few_operations_to_a_gpu(monkeypatch: pytest.MonkeyPatch):
    """Counted without one: forward and backward are one replay, and nothing else is done parameter by parameter."""
    operations = runpy.run_path(str(ROOT / "benchmarks" / "host_operations.py"))
    for name, preset in (("transformer", "mini"), ("rnnsearch", "rnnsearch-tiny")):
        monkeypatch.setitem(operations["MODELS"], name, PRESETS[preset])
        for optimizer, most in (("adam", 30), ("muon", 170)):
            counter = operations["count_replayed"](name, 6, optimizer)
            assert counter.num_launched <= most <= operations["TARGETS"][name], (name, optimizer, counter.names)
        launched, replayed = operations["count_decoding"](name, 6)
        assert replayed.num_launched <= 15 < launched.num_launched / 3, (name, replayed.names, launched.num_launched)


def test_the_table_is_printed(
    complexity: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(complexity["processor_seconds"].__globals__, "REPEATS", 1)
    complexity["main"](shrink=16)
    lines = capsys.readouterr().out.split("\n")
    assert [line.split("  ")[0] for line in lines[3:8]] == [
        "self-attention",
        "recurrent",
        "convolutional",
        "restricted",
        "convolutional, dilated",
    ]
    assert lines[4].split()[-3:] == ["5", "33", "129"]


def test_losses_from_all_logits_at_once_are_those_of_the_grouped_layer(monkeypatch: pytest.MonkeyPatch):
    """What `training_parts.py` puts in the place of the grouped layer does the same work."""
    from heedful.training.cross_entropy import linear_cross_entropy

    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    parts = runpy.run_path(str(ROOT / "benchmarks" / "training_parts.py"))
    torch.manual_seed(1)
    features, weight = torch.randn(7, 5), torch.randn(11, 5)
    gold = torch.randint(11, (7,))
    wanted, found = (each(features, weight, None, gold, 0.1) for each in (linear_cross_entropy, parts["logits_first"]))
    torch.testing.assert_close(found.total, wanted.total)
    torch.testing.assert_close(found.gold_log_probs, wanted.gold_log_probs)
    assert found.num_correct == wanted.num_correct


@pytest.mark.parametrize("has_pictures", [True, False])
def test_formulas_of_the_validation_set_are_not_trained_on_and_fit_their_pictures(tmp_path: Path, has_pictures: bool):
    crohme = runpy.run_path(str(ROOT / "benchmarks" / "crohme.py"))
    generator = random.Random(1)

    def row(number: int) -> str:
        strokes = [[generator.uniform(0, 90 * number) for _ in range(8)] for _ in range(3)] + [[5.0, 5.0]]
        return json.dumps({"latex": f"x ^ {{ {number} }}", "strokes": strokes})

    for name, numbers in (("train", [*range(1, 61), *range(1, 61)]), ("test2014", [*range(70, 73)])):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "wt", encoding="utf-8") as stream:
            stream.writelines(f"{row(number)}\n" for number in numbers)
    crohme["write"](tmp_path / "out", tmp_path, 3, has_pictures)
    rows = {
        name: [line.split("\t") for line in (tmp_path / "out" / f"{name}.tsv").read_text("utf-8").splitlines()]
        for name in ("train", "dev", "test2014")
    }
    assert len(rows["train"]) + 3 * len(rows["dev"]) == 3 * 120
    assert len(rows["test2014"]) == 3
    assert not {latex for _, latex in rows["train"]} & {latex for _, latex in rows["dev"]}
    assert rows["dev"]
    for path, _ in (*rows["train"], *rows["dev"], *rows["test2014"]):
        if not has_pictures:
            features = np.load(tmp_path / "out" / path)
            assert features.shape[0] == 4  # a row for each stroke
            assert np.isfinite(features).all()
            continue
        with Image.open(tmp_path / "out" / path) as picture:
            pixels = np.asarray(picture)
        edges = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
        assert pixels.min() < 100
        assert edges.min() == 255  # nothing is cut off


def test_strokes_are_described_alike_wherever_and_however_large_they_are_written():
    crohme = runpy.run_path(str(ROOT / "benchmarks" / "crohme.py"))
    generator = random.Random(2)
    strokes = [[(generator.gauss(30 * i, 8.0), generator.gauss(0.0, 8.0)) for _ in range(6)] for i in range(5)]
    moved = [[(7.0 * x + 300.0, 7.0 * y - 90.0) for x, y in stroke] for stroke in strokes]
    wider = [[(7.0 * x, y) for x, y in stroke] for stroke in strokes]
    features, same, other = (crohme["stroke_features"](each) for each in (strokes, moved, wider))
    np.testing.assert_allclose(same, features, atol=1e-4)
    assert np.abs(other - features).max() > 0.1


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in sorted((ROOT / "benchmarks").glob("*.py"))
        if re.search(r'add_argument\("[a-z]|required=True', path.read_bytes().decode("utf-8"))
    ],
    ids=lambda path: path.stem,
)
def test_a_benchmark_that_needs_files_says_so_before_it_begins(path: Path, monkeypatch: pytest.MonkeyPatch):
    """`make bench` goes past those that end with exit code 2."""
    monkeypatch.syspath_prepend(path.parent)
    monkeypatch.setattr(sys, "argv", [str(path)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert ended.value.code == 2


def test_terms_are_words_whose_lemma_every_reference_has():
    """Words without a lemma in a reference, in that of a longer form too, are left out, and so are short ones."""
    terms = runpy.run_path(str(ROOT / "benchmarks" / "terms.py"))
    nouns = [("house", "Haus"), ("cat", "Katze"), ("street", "Strasse"), ("garden", "Garten"), ("office", "Dienst")]
    pairs = [(f"{one} {other}", f"{left} {right}") for one, left in nouns for other, right in nouns if one != other]
    pairs = [("street garden", "Strassen Gartens"), ("garden", "Park"), ("officer", "Polizist"), *pairs]
    units = [(source.split(" "), target.split(" ")) for source, target in pairs]
    lemmas = {"Strassen": "Strasse", "Gartens": "Garten"}

    def lemma(word: str) -> str:
        return lemmas.get(word, word)

    found = terms["chosen_terms"](pairs, terms["linked_words"](units, len(units), lemma), lemma)
    assert [(term.source, term.target) for term in found] == [("street", "Strasse")]


def test_the_sign_test_counts_what_only_one_row_has_right():
    terms = runpy.run_path(str(ROOT / "benchmarks" / "terms.py"))
    first, second = [True] * 8 + [False] * 3, [True] * 2 + [False] * 6 + [True, False, False]
    assert terms["sign_test"](first, second) == (6, 1, pytest.approx(2 * (7 + 1) / 2**7))
    assert terms["sign_test"](first, first) == (0, 0, 1.0)


def test_headlines_are_split_by_the_text_and_repeated_trigrams_counted(tmp_path: Path):
    headlines = runpy.run_path(str(ROOT / "benchmarks" / "headlines.py"))
    articles = [{"title": f"A &lt;B> {n % 7}", "body": f"Some\n TEXT {n} " + "word " * 90} for n in range(300)]
    with gzip.open(tmp_path / "train.jsonl.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(f"{json.dumps(article)}\n" for article in [*articles, *articles[:50]])
    headlines["write"](SimpleNamespace(folder=tmp_path / "out", articles=tmp_path / "train.jsonl.gz"))
    train, dev = ((tmp_path / "out" / f"{name}.tsv").read_text("utf-8").splitlines() for name in ("train", "dev"))
    assert len(train) + len(dev) == 350
    assert not {*train} & {*dev}  # the same text is never on both sides
    assert 10 <= len(dev) <= 70
    text, headline = train[0].split("\t")
    assert (len(text.split()), text.split()[:2], headline[0]) == (60, ["some", "text"], "a")
    assert headlines["repeated_share"](["a b c a b c", "a b", "a b c"]) == pytest.approx(100 * 1 / 5)
