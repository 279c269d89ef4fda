"""`heedful train`: what it says, how it goes on, what it refuses."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.runs import training_device
from tests.cli.command import disk_quota, heedful
from tests.cli.conftest import Trained, write_pairs
from tests.cli.test_main import ENVIRONMENT
from tests.thorough import thorough


@pytest.fixture
def copied(trained: Trained, tmp_path: Path) -> tuple[object, ...]:
    """The command that goes on with a copy of the trained model."""
    shutil.copytree(trained.model, tmp_path / "words.model")
    return ("train", trained.data, "--out", tmp_path / "words.model", "--config", trained.config)


def test_what_is_said_of_a_training(trained: Trained):
    done = trained.done
    for line in (
        "model: transformer, 4,832 parameters",
        "vocabulary: 16 characters",
        f"folder: {trained.model}",
    ):
        assert line in done.err.split("\n")
    assert "pairs for training" in done.err
    (device,) = [line for line in done.err.split("\n") if line.startswith("device: ")]
    assert re.fullmatch(r"device: cpu, (float32|bfloat16), batches of \d+ positions", device)
    assert "step 4, epoch 1.00: loss " in done.err
    assert "  reference  " in done.err
    assert "resuming" not in done.err
    lines = done.out.split("\n")
    assert lines[0].startswith("finished: 8 steps (step 8, ")
    assert lines[1].startswith("best:  character error rate ")
    assert lines[2].startswith("test:  ")
    assert "exact match" in done.out
    assert f"next:  heedful translate {trained.model}" in lines


def test_a_finished_run_says_so_and_translates_no_test_set_again(
    copied: tuple[object, ...], monkeypatch: pytest.MonkeyPatch, trained: Trained
):
    monkeypatch.setattr("heedful.predictors.translator.Translator.measure", None)
    done = heedful(*copied)
    assert done.code == 0
    assert done.out.startswith("already finished: 8 steps")
    before = trained.done.out[trained.done.out.index("test:") : trained.done.out.index("model:")]
    assert before in done.out


def test_the_same_command_goes_on_with_a_higher_limit(copied: tuple[object, ...], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(training_device, "cuda_problem", lambda: "its driver gives PyTorch none")
    done = heedful(*copied, "--set", "training.max_steps=12")
    reason, _ = [line for line in done.err.split("\n") if line.startswith("device: ")]
    assert reason.startswith("device: the CPU, because PyTorch uses no GPU (its driver gives PyTorch none)")
    assert done.code == 0
    assert "resuming at step 8" in done.err.split("\n")
    assert "step 12, " in done.err
    assert done.out.startswith("finished: 12 steps")


def test_quiet_prints_results_only(copied: tuple[object, ...]):
    done = heedful(*copied, "--quiet")
    assert (done.code, done.err) == (0, "")
    assert "model: " in done.out
    assert "next:" not in done.out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--set", "model.model_size=32"), "model.model_size = 16, not 32"),
        (("--set", "text.source_units=words"), "text.source_units = characters, not words"),
        (("--seed", "5"), "training.seed = 1, not 5"),
        (("--columns", "2,1"), "other data (train changed)"),
    ],
)
def test_a_run_that_would_be_another_is_refused(copied: tuple[object, ...], change: tuple[str, ...], said: str):
    done = heedful(*copied, *change)
    assert (done.code, done.out) == (2, "")
    assert len(done.errors) == 1
    assert said in done.errors[0]
    assert "choose another --out" in done.errors[0]


def test_changed_data_are_refused(copied: tuple[object, ...], tmp_path: Path, trained: Trained):
    changed = tmp_path / "words.tsv"
    changed.write_bytes(trained.data.read_bytes() + b"new\tNEW\n")
    done = heedful("train", changed, *copied[2:])
    assert done.code == 2
    assert "other data (train changed)" in done.errors[0]


def test_a_refused_try_leaves_nothing_behind_that_a_better_one_would_use(tmp_path: Path, settings: Path):
    data = tmp_path / "a.tsv"
    write_pairs(data, 3)
    command = ("train", data, "--config", settings, "--out", tmp_path / "a.model")
    assert heedful(*command).code == 2
    write_pairs(data, 20)
    done = heedful(*command, "--set", "text.max_tokens=1")
    assert done.code == 2
    assert "raise text.max_tokens" in done.errors[0]
    done = heedful(*command)
    assert done.code == 0, done.err
    assert "validation is on the training pairs" in done.err


def test_two_files_with_validation_and_test_data(tmp_path: Path, settings: Path):
    for name in ("train", "val", "test"):
        write_pairs(tmp_path / f"{name}.tsv", 30, seed=len(name))
        rows = [line.split("\t") for line in (tmp_path / f"{name}.tsv").read_bytes().decode().split("\n")[:-1]]
        for side, code in enumerate(("de", "en")):
            (tmp_path / f"{name}.{code}").write_bytes("".join(f"{row[side]}\n" for row in rows).encode())
    command = ["train", tmp_path / "train.de", tmp_path / "train.en", "--config", settings, "--out", tmp_path / "m"]
    for name in ("val", "test"):
        for code in ("de", "en"):
            command += ["--dev" if name == "val" else "--test", tmp_path / f"{name}.{code}"]
    done = heedful(*command, "--seed", 3, "--minutes", 5)
    assert done.code == 0, done.err
    manifest = json.loads((tmp_path / "m" / "heedful.json").read_bytes())
    assert manifest["languages"] == ["de", "en"]
    assert json.loads((tmp_path / "m" / "run" / "test.json").read_bytes())["num_items"] > 20
    config = (tmp_path / "m" / "config.toml").read_bytes().decode()
    assert "seed = 3" in config
    assert "max_minutes = 5.0" in config


def test_languages_are_kept(tmp_path: Path, settings: Path):
    write_pairs(tmp_path / "a.tsv", 20)
    common = ("train", tmp_path / "a.tsv", "--config", settings, "--out", tmp_path / "m")
    done = heedful(*common, "--languages", "de")
    assert done.code == 2
    assert "such as de:en" in done.errors[0]
    assert heedful(*common, "--languages", "xx:yy").code == 0
    assert json.loads((tmp_path / "m" / "heedful.json").read_bytes())["languages"] == ["xx", "yy"]


def _interrupted(command: list[str], number: int) -> tuple[int, str]:
    """Run a training, send it a signal after its first validation; exit code and standard error."""
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    seen = b""
    while b"  model " not in seen:
        line = process.stderr.readline()
        assert line, seen.decode()
        seen += line
    process.send_signal(number)
    seen += process.stderr.read()
    return process.wait(timeout=60), seen.decode()


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_saves_and_the_same_command_goes_on(tmp_path: Path, settings: Path):
    data = write_pairs(tmp_path / "a.tsv", 40)
    command = [
        "train",
        str(data),
        "--config",
        str(settings),
        "--out",
        str(tmp_path / "m"),
        "--set",
        "training.patience=9999",
    ]
    endless = [sys.executable, "-m", "heedful", *command, "--set", "training.max_steps=1000000"]
    code, err = _interrupted(endless, signal.SIGINT)
    last = err.strip().split("\n")[-1]
    assert code == 130
    assert "Traceback" not in err
    assert last.startswith("heedful: stopped at step ")
    assert last.endswith("; run the same command to continue")
    step = int(last.split(";")[0].split()[-1])
    done = heedful(*command, "--set", f"training.max_steps={step + 1}")
    assert done.code == 0, done.err
    assert f"resuming at step {step:,}" in done.err.split("\n")
    assert done.out.startswith(f"finished: {step + 1} steps")


def test_ctrl_c_after_training_says_that_the_model_is_complete(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def interrupt(*arguments: object) -> str:
        raise KeyboardInterrupt

    model = tmp_path / "m"
    command = ("train", trained.data, "--out", model, "--config", trained.config)
    with monkeypatch.context() as patch:
        patch.setattr("heedful.runs.finish.cached_test_scores", interrupt)
        done = heedful(*command)
    assert done.code == 130
    said = f"heedful: stopped after training: the model in {model} is complete; run the same command for the rest"
    assert done.err.strip().split("\n")[-1] == said
    again = heedful(*command)
    assert again.code == 0
    assert again.out.startswith("already finished")
    assert "test:" in again.out


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX limits")
def test_a_quota_ends_the_training_with_exit_5_and_keeps_what_was_saved(copied: tuple[object, ...]):
    model = Path(str(copied[3]))
    before = heedful("translate", model, "abc")
    with disk_quota(10_000):
        done = heedful(*copied, "--set", "training.max_steps=12")
    assert done.code == 5
    assert len(done.errors) == 1
    assert "not saved" in done.errors[0]
    assert "Traceback" not in done.err
    assert heedful("translate", model, "abc") == before
    assert heedful(*copied, "--set", "training.max_steps=12").code == 0


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX limits")
def test_a_quota_while_test_scores_are_written_costs_nothing_later(copied: tuple[object, ...]):
    scores = Path(str(copied[3])) / "run" / "test.json"
    before = scores.read_bytes()
    for content in (None, b"", before[:100]):
        scores.unlink() if content is None else scores.write_bytes(content)
        with disk_quota(100):
            assert heedful(*copied).code == 5
        assert (scores.read_bytes() if scores.exists() else None) == content
        assert heedful("info", copied[3]).code == 0
        assert heedful(*copied).code == 0
        assert scores.read_bytes() == before


@thorough
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX pipes")
def test_a_reader_that_leaves_stops_the_training_after_a_checkpoint(tmp_path: Path, settings: Path):
    data = write_pairs(tmp_path / "a.tsv", 40)
    limits = ("--set", "training.max_steps=100000", "--set", "training.patience=9999")
    command = [sys.executable, "-m", "heedful", "train", str(data), "--config", str(settings), "--out", tmp_path / "m"]
    with subprocess.Popen(
        [*command, *limits], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as run:
        assert run.stdout is not None
        while b"step 8" not in run.stdout.readline():
            pass
        run.stdout.close()
        assert run.wait(timeout=60) == 141
    ending = json.loads((tmp_path / "m/run/history.jsonl").read_bytes().split(b"\n")[-2])
    assert ending["event"] == "stopped"
    checkpoints = sorted(path.name for path in (tmp_path / "m/run/checkpoints").iterdir())
    assert int(checkpoints[-1]) == ending["step"] > 8


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_messages_that_nobody_can_read_cost_no_result(trained: Trained):
    command = ("translate", str(trained.model), "--threads", "1")
    source = b"abc\n\xff\n"
    whole = heedful(*command, stdin=source)
    assert "warning" in whole.err
    reading, closed = os.pipe()
    os.close(reading)
    full = os.open("/dev/full", os.O_WRONLY)
    cold = [sys.executable, "-m", "heedful", *command]
    for errors in (full, closed):
        done = subprocess.run(cold, input=source, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=errors, check=False)
        assert (done.returncode, done.stdout.decode()) == (0, whole.out)
        os.close(errors)
