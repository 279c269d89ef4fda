"""`heedful compare`: the table, what it leaves, how it goes on, what it refuses."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from heedful.cli import train as module
from heedful.cli.messages import Messages
from heedful.comparison.run_result import RunResult, read_record
from heedful.errors import Stopped
from heedful.runs.request import TrainRequest
from heedful.training.lock import locked
from tests.cli.command import Done, heedful
from tests.cli.conftest import SETTINGS, write_pairs
from tests.cli.test_main import ENVIRONMENT
from tests.thorough import thorough

BASE = (
    SETTINGS.replace("[", "[base.").replace("[base.model]", "[kinds.transformer]").replace('kind = "transformer"\n', "")
)
GRID = f"""
title = "Tiny"
baseline = "plain"
length_edges = [4, 7]
{BASE}
[kinds.luong]
num_layers = 1
embedding_size = 8
hidden_size = 8
[[rows]]
name = "plain"
model = {{ kind = "transformer" }}
[[rows]]
name = "odd"
model = {{ kind = "transformer", num_heads = 3 }}
[[rows]]
name = "local-m / dot"
model = {{ kind = "luong", window = "local-m", score = "dot" }}
[[rows]]
name = "too fast"
model = {{ kind = "transformer" }}
training = {{ optimizer = {{ learning_rate = 1e38 }} }}
"""


def make_grid(folder: Path, text: str = GRID) -> tuple[object, ...]:
    """The command that compares on a few words."""
    (folder / "grid.toml").write_bytes(text.encode())
    data = write_pairs(folder / "words.tsv", 150)
    return ("compare", folder / "grid.toml", data, "--out", folder / "out")


class ComparisonResult:
    """A comparison that was run once."""

    def __init__(self, folder: Path) -> None:
        self.command = (*make_grid(folder), "--seeds", "1,2")
        self.out = folder / "out"
        self.done: Done = heedful(*self.command)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> ComparisonResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        made = ComparisonResult(tmp_path_factory.mktemp("compared"))
    assert made.done.code == 0, made.done.err
    return made


@pytest.fixture
def copied(compared: ComparisonResult, tmp_path: Path) -> tuple[object, ...]:
    """The same command on a copy of what it left."""
    shutil.copytree(compared.out, tmp_path / "out")
    return (*compared.command[:4], tmp_path / "out", "--seeds", "1,2")


def test_the_table_is_all_that_is_printed(compared: ComparisonResult):
    lines = compared.done.out.split("\n")
    assert lines[0] == "Tiny"
    assert lines[2].split()[:4] == ["row", "exact", "match", "95"]
    assert [line.split("  ")[0] for line in lines[3:5]] == ["plain", "local-m / dot"]
    assert "± " in lines[3]
    assert "exact match by source length in characters (sources)" in lines
    assert f"report: {compared.out / 'report.html'}" in lines
    assert "nrefs:1|case:mixed" in compared.done.out


def test_rows_that_cannot_be_are_named_and_the_others_run(compared: ComparisonResult):
    odd = "not run: odd: model: model_size 16 is not divisible by num_heads 3"
    assert f"note: {odd}" in compared.done.out
    assert "warning: odd: not run: model: model_size 16" in compared.done.err
    assert compared.done.out.count("not run: too fast: seed 1: step ") == 1
    assert compared.done.err.count("too fast, seed 1: not run: step ") == 1
    assert "too fast, seed 2" not in compared.done.err
    assert "== plain, seed 1: run 1 of 8" in compared.done.err
    assert "== local-m / dot, seed 2: run 7 of 8" in compared.done.err


def test_every_run_leaves_a_file_and_the_tables_agree_with_them(compared: ComparisonResult):
    names = sorted(path.name for path in (compared.out / "findings").iterdir())
    assert names == ["local-m-dot-1.json", "local-m-dot-2.json", "plain-1.json", "plain-2.json"]
    found = [read_record(compared.out / "findings" / name, RunResult) for name in names]
    facts = json.loads((compared.out / "table.json").read_bytes())
    plain, local = facts["rows"]
    assert (plain["name"], local["name"]) == ("plain", "local-m / dot")
    assert plain["figures"]["perplexity"]["mean"] == pytest.approx((found[2].perplexity + found[3].perplexity) / 2)
    assert plain["seeds"] == [1, 2]
    assert plain["difference"] is None
    assert 0 < local["difference"]["p_value"] <= 1
    assert facts["command"] == shlex.join(
        ["heedful", *map(str, compared.command[:3]), "--out", str(compared.out), "--seeds", "1,2"]
    )
    assert {each.step for each in found} == {8}
    assert len({each.tokenizers for each in found}) == 1
    assert len({each.num_target_tokens for each in found[2:]}) <= 2
    assert found[2].num_target_tokens == found[0].num_target_tokens
    assert found[0].outputs != found[1].outputs or found[2].outputs != found[3].outputs
    assert (compared.out / "table.md").read_bytes().decode().startswith("# Tiny\n")
    assert (compared.out / "by-length.png").read_bytes().startswith(b"\x89PNG")
    page = (compared.out / "report.html").read_bytes().decode()
    assert "data:image/png;base64," in page
    assert "local-m / dot" in page


def test_perplexity_is_what_evaluate_measures(compared: ComparisonResult, tmp_path: Path):
    items = json.loads((compared.out / "items.json").read_bytes())
    rows = zip(items["sources"], items["references"], strict=True)
    data = tmp_path / "test.tsv"
    data.write_bytes("".join(f"{source}\t{texts[0]}\n" for source, texts in rows).encode())
    done = heedful("evaluate", compared.out / "runs" / "plain-1", data, "--format", "json")
    facts = json.loads(done.out)
    found = read_record(compared.out / "findings" / "plain-1.json", RunResult)
    assert found.perplexity == pytest.approx(facts["perplexity"]["per_token"], rel=1e-6)
    table = json.loads((compared.out / "table.json").read_bytes())
    other = read_record(compared.out / "findings" / "plain-2.json", RunResult)
    right = [
        100 * sum(output == texts[0] for output, texts in zip(run.outputs, items["references"], strict=True))
        for run in (found, other)
    ]
    assert facts["results"][0]["score"] == pytest.approx(right[0] / len(items["sources"]))
    assert table["rows"][0]["scores"]["exact_match"]["mean"] == pytest.approx(sum(right) / 2 / len(items["sources"]))


def test_the_command_of_a_run_does_it_alone(compared: ComparisonResult, tmp_path: Path):
    found = read_record(compared.out / "findings" / "local-m-dot-2.json", RunResult)
    words = shlex.split(found.command)
    assert words[:2] == ["heedful", "train"]
    assert words[-2:] == ["--out", str(compared.out / "runs" / "local-m-dot-2")]
    done = heedful(*words[1:-1], tmp_path / "alone")
    assert done.code == 0, done.err
    alone, together = (
        json.loads((folder / "heedful.json").read_bytes()) for folder in (tmp_path / "alone", Path(words[-1]))
    )
    assert alone["weights"] == together["weights"]  # named by their hash


def test_the_same_command_trains_nothing_again(
    copied: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, compared: ComparisonResult
):
    monkeypatch.setattr("heedful.comparison.run.evaluate_run", None)
    done = heedful(*copied)
    assert done.code == 0, done.err
    assert done.out.split("\ntables:")[0] == compared.done.out.split("\ntables:")[0]
    assert done.err.count("done before") == 4


@thorough
def test_more_seeds_and_a_larger_budget_go_on(copied: tuple[object, ...]):
    done = heedful(*copied[:-1], "1,3", "--quiet")
    assert done.code == 0
    facts = json.loads((Path(str(copied[4])) / "table.json").read_bytes())
    assert facts["rows"][0]["seeds"] == [1, 3]
    grid = Path(str(copied[1]))
    before = grid.read_bytes()
    try:
        grid.write_bytes(before.replace(b"max_steps = 8", b"max_steps = 12"))
        done = heedful(*copied[:-1], "1")
    finally:
        grid.write_bytes(before)
    assert done.code == 0
    assert "resuming at step 8" in done.err
    found = read_record(Path(str(copied[4])) / "findings" / "plain-1.json", RunResult)
    assert (found.step, found.ended) == (12, "12 steps")


def test_a_row_whose_settings_changed_is_not_mixed_with_the_old_one(copied: tuple[object, ...]):
    grid = Path(str(copied[1]))
    before = grid.read_bytes()
    try:
        grid.write_bytes(before.replace(b"embedding_size = 8", b"embedding_size = 12"))
        done = heedful(*copied)
    finally:
        grid.write_bytes(before)
    assert done.code == 0
    assert "not run: local-m / dot: seed 1: " in done.out
    assert "holds a run with model.embedding_size = 8, not 12" in done.out
    assert [line.split("  ")[0] for line in done.out.split("\n")[3:5]] == ["plain", ""]


def test_other_data_in_the_same_folder_is_refused(copied: tuple[object, ...], tmp_path: Path):
    other = write_pairs(tmp_path / "words.tsv", 150, seed=9)
    done = heedful(*copied[:2], other, *copied[3:])
    assert (done.code, done.out) == (2, "")
    assert "holds a comparison on other data; choose another --out" in done.errors[0]


def test_a_damaged_finding_is_refused(copied: tuple[object, ...]):
    (Path(str(copied[4])) / "findings" / "plain-2.json").write_bytes(b"{}")
    done = heedful(*copied)
    assert (done.code, done.out) == (3, "")
    assert "plain-2.json: not what a comparison writes" in done.errors[0]


@thorough
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_signal_stops_and_the_same_command_goes_on_within_the_run(tmp_path: Path):
    command = make_grid(tmp_path, GRID.replace("max_steps = 8", "max_steps = 1000000\npatience = 9999999"))
    grid = tmp_path / "grid.toml"
    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", *map(str, command)],
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    seen = b""
    while b"  model " not in seen:
        line = process.stderr.readline()
        assert line, seen.decode()
        seen += line
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert out == b""
    last = err.decode().strip().split("\n")[-1]
    step = int(last.removeprefix("heedful: stopped at step ").partition(";")[0])
    grid.write_bytes(GRID.replace("max_steps = 8", f"max_steps = {step + 4}\npatience = 9999999").encode())
    done = heedful(*command)
    assert done.code == 0, done.err
    assert done.err.count(f"resuming at step {step:,}") == 1
    assert done.err.index("== plain, seed 1") < done.err.index("resuming at") < done.err.index("== local-m")


def test_what_was_found_before_a_stop_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from heedful.cli import train as trainings

    train = trainings.train_and_watch

    def stopped(recipe: TrainRequest, messages: Messages) -> object:
        if "local-m" in str(recipe.out):
            raise Stopped("stopped at step 3; the same command goes on", signal.SIGINT)
        return train(recipe, messages)

    command = make_grid(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(trainings, "train_and_watch", stopped)
        done = heedful(*command)
    assert (done.code, done.out) == (130, "")
    assert [row["name"] for row in json.loads((tmp_path / "out" / "table.json").read_bytes())["rows"]] == ["plain"]
    done = heedful(*command)
    assert done.code == 0
    assert done.err.count("done before") == 1


def test_validation_data_stand_in_for_a_test_set_and_metrics_may_be_chosen(tmp_path: Path):
    text = GRID.replace('title = "Tiny"', 'metrics = ["chrf"]').partition('[[rows]]\nname = "odd"')[0]
    command = make_grid(tmp_path, text)
    dev = write_pairs(tmp_path / "dev.tsv", 30, seed=4)
    done = heedful(*command, "--dev", dev, "--minutes-per-run", "0.00001", "--columns", "2,1")
    assert done.code == 0, done.err
    assert "note: scores are on the validation set" in done.out
    assert done.out.split("\n")[0].split()[:2] == ["row", "chrF2"]
    found = read_record(tmp_path / "out" / "findings" / "plain-1.json", RunResult)
    assert (found.step, found.ended) == (1, "1e-05 minutes")
    assert f"--dev {dev} --columns 2,1" in found.command
    sources = {line.split("\t")[1] for line in dev.read_bytes().decode().split("\n")[:-1]}
    assert len(found.outputs) == len(sources)


@pytest.mark.parametrize(
    ("change", "more", "complaint"),
    [
        (
            (GRID, "[[rows]]\nname = 'a'\nmodel = { kind = 'luong', x = 1 }"),
            (),
            "no row of the grid can be run; a: model",
        ),
        (("[[rows]]", "[[row]]"), (), "grid.toml: row: unknown key; did you mean 'rows'?"),
        (('baseline = "plain"', 'baseline = "plane"'), (), "baseline: no row 'plane'; did you mean 'plain'?"),
        (("", ""), ("--seeds", "1,x"), "--seeds '1,x': expected distinct numbers"),
        (("", ""), ("--seeds", "1,1"), "--seeds '1,1': expected distinct numbers"),
        (("", ""), ("--languages", "de"), "such as de:en"),
    ],
)
def test_what_is_refused_before_any_training(
    change: tuple[str, str], more: tuple[str, ...], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("heedful.runs.train._trainer", None)
    done = heedful(*make_grid(tmp_path, GRID.replace(*change)), *more)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.errors[0]


def test_too_few_pairs_to_hold_any_out(tmp_path: Path):
    command = make_grid(tmp_path, GRID.partition('[[rows]]\nname = "odd"')[0])
    write_pairs(tmp_path / "words.tsv", 20)
    done = heedful(*command)
    assert done.code == 2
    assert "too few pairs to hold out a test set: give --test" in done.errors[0]


def test_missing_data_is_no_fault_of_the_rows(tmp_path: Path):
    command = make_grid(tmp_path)
    (tmp_path / "words.tsv").unlink()
    done = heedful(*command)
    assert done.code == 2
    assert "words.tsv" in done.errors[0]
    assert "not run" not in done.err


def test_help_loses_no_word():
    shown = " ".join(heedful("compare", "--help").out.split())
    assert '"base" has the settings that all rows share, "rows" the name and changes of each row' in shown
    assert "[base" not in shown


ENSEMBLE = """
[[rows]]
name = "both"
ensemble = ["plain", "local-m / dot"]
[[rows]]
name = "none"
ensemble = ["plain", "odd"]
"""


@thorough
def test_models_of_rows_decode_together(tmp_path: Path):
    text = GRID.partition('[[rows]]\nname = "too fast"')[0] + ENSEMBLE
    done = heedful(*make_grid(tmp_path, text))
    assert done.code == 0, done.err
    assert "note: not run: none: needs odd, which is not run" in done.out
    found = {path.stem: read_record(path, RunResult) for path in (tmp_path / "out" / "findings").iterdir()}
    plain, local, both = found["plain-1"], found["local-m-dot-1"], found["both-1"]
    assert both.num_parameters == plain.num_parameters + local.num_parameters
    assert both.outputs
    assert both.perplexity not in (plain.perplexity, local.perplexity)
    assert "heedful evaluate" in both.command
    assert "runs/local-m-dot-1" in both.command
    again = heedful(*make_grid(tmp_path, text))
    assert again.err.count("done before") == 3


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ('[[rows]]\nname = "both"\nensemble = ["none"]\n', "row 'both': ensemble: no trained row 'none' above it"),
        ('[[rows]]\nname = "both"\nensemble = ["plain"]\ntext = { min_count = 2 }\n', "give it no settings"),
    ],
)
def test_ensembles_that_cannot_be(rows: str, complaint: str, tmp_path: Path):
    done = heedful(*make_grid(tmp_path, GRID + rows))
    assert done.code == 2
    assert complaint in done.errors[0]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('metrics = ["chrf", "blue"]', "metrics: no metric 'blue'; did you mean 'bleu'?"),
        ('metrics = ["wer"]', "metrics: metric 'wer' has two meanings"),
        ("length_edges = [7, 4]", "length_edges: edges of lengths must increase, got [7, 4]"),
        ("length_edges = [4, 4]", "length_edges: edges of lengths must increase"),
        ("length_edges = [4, -1]", "length_edges.1: expected 0 or more"),
    ],
)
def test_a_table_that_could_not_be_made_is_refused_before_any_training(line: str, complaint: str, tmp_path: Path):
    done = heedful(*make_grid(tmp_path, GRID.replace("length_edges = [4, 7]", line)))
    assert done.code == 2
    assert complaint in done.errors[0]
    assert not (tmp_path / "out").exists()


def test_a_second_comparison_in_the_same_folder_is_refused(copied: tuple[object, ...], tmp_path: Path):
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    with locked(tmp_path / "out"):
        before[tmp_path / "out" / "lock"] = (tmp_path / "out" / "lock").read_bytes()
        done = heedful(*copied)
    assert done.code == 2
    assert "is training in it; wait for it, or choose another --out" in done.errors[0]
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before
    assert heedful(*copied).code == 0


@pytest.mark.parametrize("changed_in", [1, 2])
def test_data_that_change_meanwhile_end_a_comparison(changed_in: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    command = make_grid(tmp_path, GRID.partition('[[rows]]\nname = "odd"')[0])
    seeds: list[int] = []

    def train(recipe: TrainRequest, *others: Any) -> Any:
        seeds.append(1)
        result = known(recipe, *others)
        if len(seeds) == changed_in:
            with (tmp_path / "words.tsv").open("ab") as file:
                file.write(b"abc\tABC\n")
        return result

    known = module.train_and_watch
    monkeypatch.setattr(module, "train_and_watch", train)
    done = heedful(*command, "--seeds", "1,2")
    assert done.code == 2
    assert "the train data changed while they were read" in done.errors[-1]
    assert len(seeds) == changed_in
    assert len([*(tmp_path / "out" / "findings").glob("*.json")]) == changed_in - 1
