"""Translating with Ray Data; runs where Ray is installed."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from heedful.cli.many_files import ManyFiles, run_with_ray, translate_files
from heedful.cli.messages import Messages
from heedful.engines.shards import Shard, plan_jobs, run_jobs
from heedful.errors import ResourceError, UsageError, install_command
from tests.architecture.package import SOURCE
from tests.cli.command import heedful
from tests.cli.conftest import Trained

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the package ray")
# What Ray leaves open when it shuts down is its own.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)


@dataclass(frozen=True)
class Shouting:
    """Writes lines in capitals; a worker that meets the word kill for the first time is killed."""

    marker: Path

    def load(self) -> Callable[[Shard], int]:
        def shout(shard: Shard) -> int:
            lines = list(shard.lines())
            if "kill" in lines and not self.marker.exists():
                self.marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if "full" in lines:
                raise OSError(28, "No space left on device")
            if "bad" in lines:
                raise UsageError("bad line")
            shard.write(f"{line.upper()}\n" for line in lines)
            return sum(line == "long" for line in lines)

        return shout


def files(tmp_path: Path, *texts: str) -> ManyFiles:
    sources: list[Path] = []
    for index, text in enumerate(texts):
        sources.append(tmp_path / f"{index}.txt")
        sources[-1].write_text(text, encoding="utf-8", newline="\n")
    return ManyFiles(sources, tmp_path / "out", 2, 1)


@needs_ray
def test_a_killed_worker_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    first = "".join(f"line {index}\n" for index in range(40)) + "kill\nafter\nlong\n"
    given = files(tmp_path, first, "x\n\ny")
    jobs = plan_jobs(given.sources, given.folder, {}, shard_lines=5)
    opener = Shouting(tmp_path / "marker")
    done = list(run_jobs(jobs, lambda shards: run_with_ray(shards, opener, given, Messages(False))))
    assert (tmp_path / "marker").exists()
    assert len(done) == 2
    assert (tmp_path / "out" / "0.txt").read_text(encoding="utf-8") == first.upper()
    assert (tmp_path / "out" / "1.txt").read_text(encoding="utf-8") == "X\n\nY\n"
    assert "0.txt: 1 line cut from line 41 on" in capsys.readouterr().err


@needs_ray
@pytest.mark.parametrize(
    ("word", "kind", "said"), [("full", ResourceError, "no space left"), ("bad", UsageError, "bad")]
)
def test_what_stops_a_worker_is_said_and_the_rest_stays(tmp_path: Path, word: str, kind: type[Exception], said: str):
    given = files(tmp_path, "fine\n", f"{word}\n")
    with pytest.raises(kind, match=said) as raised:
        translate_files(given, {}, Shouting(tmp_path / "marker"), Messages(True))
    assert "\n" not in str(raised.value)
    given.sources[1].write_text("mended\n", encoding="utf-8")
    with pytest.raises(UsageError, match="begun with another"):
        translate_files(given, {}, Shouting(tmp_path / "marker"), Messages(True))
    assert not (tmp_path / "out" / "1.txt").exists()


@needs_ray
def test_outputs_are_those_of_one_process_and_a_killed_run_goes_on(trained: Trained, tmp_path: Path):
    lines = ("abc\nfed\n\ncafebabe\nab a d\n" * 1000).encode()
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_bytes(lines[: len(lines) - 7 * (name == "two.txt")])
    arguments = ["translate", trained.model, "--beam", 1, "--engine", "torch", "--quiet"]
    names = [tmp_path / "one.txt", tmp_path / "two.txt"]
    out = tmp_path / "out"
    command = [sys.executable, "-m", "heedful", *map(str, arguments), "--ray", "--workers", "1", *map(str, names)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])}
    running = subprocess.Popen([*command, "--output", str(out)], env=environment, start_new_session=True)
    deadline = time.monotonic() + 240
    while not list(out.glob("*/0*")) and time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    kept = {path: path.stat().st_mtime_ns for path in out.glob("*/0*")}
    done = subprocess.run([*command, "--output", str(out)], env=environment, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert kept
    assert sorted(path.name for path in out.iterdir()) == ["one.txt", "shards.json", "two.txt"]
    for name in names:
        whole = heedful(*arguments, "-i", name)
        assert (out / name.name).read_text(encoding="utf-8") == whole.out
    facts = json.loads((out / "shards.json").read_text(encoding="utf-8"))
    assert facts["about"]["engine"] == "torch"
    refused = heedful("translate", trained.model, "--beam", 2, "--ray", *names, "--output", out)
    assert (refused.code, len(refused.errors)) == (2, 1)
    assert "begun with another" in refused.errors[0]


@pytest.mark.parametrize(
    "arguments", [["--ray"], ["--ray", "a.txt"], ["--workers", "2", "a.txt"], ["--ray", "--output", "out"]]
)
def test_files_and_a_folder_are_needed(trained: Trained, arguments: list[str]):
    done = heedful("translate", trained.model, *arguments)
    assert (done.code, len(done.errors)) == (2, 1)
    assert "--ray takes files and a folder" in done.errors[0]


def test_without_ray_the_install_line_is_said(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heedful.cli.many_files.find_spec", lambda _: None)
    (tmp_path / "a.txt").write_text("abc\n", encoding="utf-8")
    done = heedful("translate", trained.model, "--ray", tmp_path / "a.txt", "--output", tmp_path / "out")
    assert (done.code, len(done.errors)) == (6, 1)
    assert install_command("ray") in done.errors[0]
    assert not (tmp_path / "out").exists()
