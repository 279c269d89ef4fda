import json
import math
from pathlib import Path

import pytest

from heedful.predictors.table import load
from heedful.search.config import SearchConfig
from tests.cli.command import heedful
from tests.cli.conftest import Trained


def test_each_pair_has_a_line_and_all_of_them_a_perplexity(trained: Trained):
    done = heedful("score", trained.model, trained.data)
    assert done.code == 0
    rows = [[float(cell) for cell in line.split("\t")] for line in done.out.split("\n")[:-1]]
    pairs = [line.split("\t") for line in trained.data.read_bytes().decode().split("\n")[:-1]]
    assert [row[2] for row in rows] == [len(target) + 1 for _, target in pairs]
    assert all(row[1] == pytest.approx(row[0] / row[2], abs=1e-6) for row in rows)
    total = json.loads(heedful("score", trained.model, trained.data, "--total", "--format", "jsonl").out)
    assert total["log_prob"] == pytest.approx(sum(row[0] for row in rows), abs=1e-3)
    assert total["num_tokens"] == sum(row[2] for row in rows)
    assert total["perplexity"] == pytest.approx(math.exp(-total["log_prob"] / total["num_tokens"]))
    num_characters = sum(len(target) for _, target in pairs)
    assert total["bits_per_character"] == pytest.approx(-total["log_prob"] / math.log(2) / num_characters)
    text = heedful("score", trained.model, trained.data, "--total").out
    assert text == done.err.split("\n", 1)[1]
    assert f"perplexity {total['perplexity']:.3f}" in text
    assert text.startswith("140 pairs, ")


def test_the_perplexity_is_that_of_evaluate(trained: Trained, tmp_path: Path):
    data = tmp_path / "distinct.tsv"
    data.write_bytes("".join(f"{word}\t{word.upper()}\n" for word in ("abc", "fed", "cafe", "b", "deface")).encode())
    total = json.loads(heedful("score", trained.model, data, "--total", "--format", "jsonl").out)
    evaluated = json.loads(heedful("evaluate", trained.model, data, "--format", "json").out)["perplexity"]
    assert evaluated["per_token"] == pytest.approx(total["perplexity"], rel=1e-5)
    assert evaluated["bits_per_character"] == pytest.approx(total["bits_per_character"], rel=1e-5)


def test_the_scores_of_outputs_are_those_that_the_search_gave_them(trained: Trained, tmp_path: Path):
    translator = load(trained.model)
    # An unknown token is written as "<unk>" and would be read as five characters.
    settings = SearchConfig(beam=4, nbest=4, max_length_ratio=1.0, max_length_offset=4, forbid_unknown=True)
    found = translator.translate(["abc", "fed", "deface", "b"], nbest=4, search=settings)
    rows = [(one.source, vars(other)) for one in found for other in one.alternatives]
    assert len(rows) == 16
    data = tmp_path / "nbest.tsv"
    data.write_bytes("".join(f"{source}\t{one['text']}\n" for source, one in rows).encode())
    scored = [
        json.loads(line) for line in heedful("score", trained.model, data, "--format", "jsonl").out.split("\n")[:-1]
    ]
    for (source, one), found in zip(rows, scored, strict=True):
        values = found["token_log_probs"]
        # An output of as many tokens as it may have was not ended by the model.
        counted = values[:-1] if len(values) > len(source) + 4 else values
        assert sum(counted) == pytest.approx(one["log_prob"], abs=1e-5)
        assert sum(counted) / len(counted) == pytest.approx(one["score"], abs=1e-5)
        assert found["log_prob"] == pytest.approx(sum(found["token_log_probs"]), abs=1e-9)
        assert found["perplexity"] == pytest.approx(math.exp(-found["per_token"]))
        assert found["target_pieces"][-1] == "<eos>"


def test_python_gives_the_same_in_windows_of_any_size(trained: Trained):
    translator = load(trained.model)
    pairs = [("abc", "ABC"), ("", "A"), ("fed", ""), ("cafe", "CAFE"), ("b", "B")]
    whole = translator.score(pairs)
    for window, batch_tokens in ((1, 1), (2, 7), (3, 100)):
        found = list(translator.scored_pairs(iter(pairs), window_lines=window, batch_tokens=batch_tokens))
        assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in whole], abs=1e-5)
        assert [(one.source, one.target) for one in found] == pairs
    assert all(one.alignment is None and one.attention is None for one in whole)


def test_what_is_cut_or_missing_is_told(trained: Trained, tmp_path: Path):
    data = tmp_path / "long.tsv"
    data.write_bytes(b"abc\tABC\nabc\t" + b"A" * 30 + b"\n")
    done = heedful("score", trained.model, data, "-o", tmp_path / "out", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", f"heedful: warning: {data}:2: cut after 24 tokens\n")
    assert len((tmp_path / "out").read_bytes().split(b"\n")) == 3
    assert heedful("score", trained.model, tmp_path / "none.tsv").code == 2


def test_bits_are_those_of_the_characters_that_were_scored(trained: Trained, tmp_path: Path):
    data = tmp_path / "long.tsv"
    data.write_bytes(b"abc\t" + b"A" * 300 + b"\n")
    done = heedful("score", trained.model, data, "--total", "--format", "jsonl")
    facts = json.loads(done.out)
    assert facts["num_tokens"] == 23, "no end is counted, for it does not end there"
    assert facts["bits_per_character"] == pytest.approx(-facts["log_prob"] / math.log(2.0) / 23)
