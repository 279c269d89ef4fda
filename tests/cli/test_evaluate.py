import json
import shutil
from pathlib import Path

import pytest

from heedful.engines.folder import open_folder
from heedful.pages.evaluation import evaluation
from tests.cli.command import heedful
from tests.cli.conftest import Trained, write_pairs


def test_scores_with_signatures_and_perplexity(trained: Trained):
    done = heedful("evaluate", trained.model, trained.data, "--metrics", "bleu, chrf", "--limit", 30)
    assert done.code == 0
    assert done.out.startswith("30 items, 30 references\n")
    assert "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in done.out
    assert "chrF2" in done.out
    assert "perplexity " in done.out
    assert "by source length in characters" in done.out
    assert "30 sources in " in done.err
    assert "a second, beam 2" in done.err


def test_json_holds_the_same_figures(trained: Trained):
    arguments = ("evaluate", trained.model, trained.data, "--limit", 20, "--beam", 1)
    text = heedful(*arguments)
    done = heedful(*arguments, "--format", "json", "--quiet")
    assert (done.code, done.err) == (0, "")
    facts = json.loads(done.out)
    assert [result["metric"] for result in facts["results"]] == ["exact_match", "character_error_rate"]
    assert f"{facts['results'][1]['score']:.2f} %" in text.out
    assert f"perplexity {facts['perplexity']['per_token']:.3f} a target token" in text.out
    assert facts["data"] == [str(trained.data)]
    assert "beam 1" in text.err


def test_perplexity_is_what_validation_measures(trained: Trained, tmp_path: Path):
    """The kept model's loss on its validation set is in its own log."""
    records = [json.loads(line) for line in (trained.model / "run" / "metrics.jsonl").read_bytes().split(b"\n")[:-1]]
    best = next(record for record in reversed(records) if record["is_best"])
    from heedful.data.corpus import find_pairs
    from heedful.data.corpus_filter import CorpusFilter
    from heedful.data.split_positions import split_of

    pairs = [*CorpusFilter(2000).apply(find_pairs([trained.data]))]
    rows = [pair for pair in pairs if split_of(pair.source, 0.1, 0.1) == "dev"]
    dev = tmp_path / "dev.tsv"
    dev.write_bytes("".join(f"{pair.source}\t{pair.target}\n" for pair in rows).encode())
    done = heedful("evaluate", trained.model, dev, "--format", "json")
    facts = json.loads(done.out)
    import math

    assert math.log(facts["perplexity"]["per_token"]) == pytest.approx(best["scores"]["loss"], rel=1e-5)
    num_characters = sum(len(pair.target) for pair in rows)
    nats = best["scores"]["loss"] * facts["perplexity"]["num_tokens"]
    assert facts["perplexity"]["bits_per_character"] == pytest.approx(nats / math.log(2) / num_characters, rel=1e-5)


def test_references_that_are_cut_are_told(trained: Trained, tmp_path: Path):
    data = tmp_path / "long.tsv"
    data.write_bytes(b"abc\t" + b"A" * 30 + b"\nabd\tABD\n")
    done = heedful("evaluate", trained.model, data)
    assert "perplexity: 1 reference cut at 24 tokens" in done.err


def test_against_itself_nothing_is_decided(trained: Trained):
    arguments = ("evaluate", trained.model, trained.data, "--limit", 10, "--versus", trained.model)
    done = heedful(*arguments)
    assert done.code == 0
    assert f"{trained.model} against {trained.model}" in done.out
    assert done.out.count("undecided") == 2
    assert done.out.count("perplexity") == 2
    facts = json.loads(heedful(*arguments, "--format", "json").out)
    assert [found["difference"] for found in facts["versus"]["differences"]] == [0.0, 0.0]
    assert facts["versus"]["model"] == str(trained.model)


def test_scores_by_length_are_drawn(trained: Trained, tmp_path: Path):
    picture = tmp_path / "by-length.png"
    command = ("evaluate", trained.model, trained.data, "--versus", trained.model, "--png", picture)
    assert heedful(*command).code == 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    few = heedful(*command[:-1], tmp_path / "few.png", "--limit", 10)
    assert few.errors == [
        "heedful: error: evaluate: --png: too few sources, or of one length, to draw a score by length"
    ]
    assert not (tmp_path / "few.png").exists()


def test_columns_turn_the_data_round(trained: Trained, tmp_path: Path):
    turned = tmp_path / "turned.tsv"
    rows = [line.split("\t") for line in trained.data.read_bytes().decode().split("\n")[:-1]]
    turned.write_bytes("".join(f"{target}\t{source}\n" for source, target in rows[:10]).encode())
    straight = json.loads(heedful("evaluate", trained.model, trained.data, "--limit", 8, "--format", "json").out)
    back = json.loads(
        heedful("evaluate", trained.model, turned, "--columns", "2,1", "--limit", 8, "--format", "json").out
    )
    assert back["results"] == straight["results"]


def test_a_misspelt_metric_is_refused_before_any_work(trained: Trained, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heedful.predictors.table.load", None)
    done = heedful("evaluate", trained.model, trained.data, "--metrics", "blue")
    assert (done.code, done.out) == (2, "")
    assert done.errors == ["heedful: error: no metric 'blue'; did you mean 'bleu'?"]


def test_lowercase(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heedful.text.tokenizer.UnitTokenizer.decode", lambda self, ids: "abc")
    data = tmp_path / "a.tsv"
    data.write_bytes(b"abc\tABC\n")
    scores = [
        json.loads(heedful("evaluate", trained.model, data, "--format", "json", *more).out)["results"][0]["score"]
        for more in ((), ("--lowercase",))
    ]
    assert scores == [0.0, 100.0]


def test_nothing_to_score(trained: Trained, tmp_path: Path):
    data = tmp_path / "a.tsv"
    data.write_bytes(b" \tABC\n")
    done = heedful("evaluate", trained.model, data)
    assert done.code == 2
    assert "no row has a source" in done.errors[0]
    write_pairs(data, 2)
    assert heedful("evaluate", trained.model, data).code == 0


@pytest.mark.parametrize("command", ["evaluate", "calibrate"])
def test_a_row_in_a_hundred_that_cannot_be_read_is_left_out_and_named(trained: Trained, tmp_path: Path, command: str):
    model = shutil.copytree(trained.model, tmp_path / "m")
    data = write_pairs(tmp_path / "test.tsv", 160, seed=6)
    data.write_bytes(data.read_bytes() + b"lonely\n")
    done = heedful(command, model, data)
    assert done.code == 0, done.err
    assert f"warning: {data}: 1 of 161 rows left out as unreadable: line 161" in done.err
    data.write_bytes(data.read_bytes() + b"lonely\n")
    done = heedful(command, model, data, "--quiet")
    assert (done.code, len(done.errors)) == (2, 1), done.err


def test_a_recorded_evaluation_is_what_the_page_shows(trained: Trained, tmp_path: Path):
    model = tmp_path / "copy.model"
    shutil.copytree(trained.model, model)
    done = heedful("evaluate", model, trained.data, "--limit", 20, "--record")
    assert done.code == 0
    assert f"heedful serve {model} shows them" in done.err
    shown = evaluation(model, open_folder(model).facts["weights"])
    assert [one["key"] for one in shown["metrics"]] == ["exact_match", "character_error_rate"]
    assert f"{shown['metrics'][1]['score']:.2f} %" in done.out
    assert shown["numItems"] == len(shown["worst"]) == 20
    assert heedful("evaluate", model, trained.data, "--record", "--ensemble", trained.model).code == 2


def test_a_record_that_cannot_be_written_is_one_line(trained: Trained, tmp_path: Path):
    model = tmp_path / "copy.model"
    shutil.copytree(trained.model, model)
    (model / "run" / "evaluation.json").mkdir()
    done = heedful("evaluate", model, trained.data, "--limit", 5, "--record")
    assert done.code in (3, 5)
    assert done.err.strip().splitlines()[-1].startswith("heedful: error: ")
