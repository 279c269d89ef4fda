import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import typer

from heedful.cli.main import COMMANDS, _app
from heedful.cli.options import choose_device, parse_columns, use_threads
from heedful.cpu.contention import stop_watching
from heedful.data.corpus import find_pairs
from heedful.errors import UsageError
from tests.cli.command import heedful


@pytest.fixture(autouse=True)
def no_watch() -> Generator[None]:
    yield
    stop_watching()


@pytest.mark.parametrize("text", [" ", "1", "1,", "1;2", ",2", "1,2,3", "1," + "9" * 5000, "9999999999,1"])
def test_columns_that_are_none(text: str):
    with pytest.raises(UsageError, match="such as 2,1"):
        parse_columns(text)


def test_columns():
    assert parse_columns(" 3, 1") == (3, 1)


def test_columns_that_were_named_are_read_as_they_are(tmp_path: Path):
    inflections, memory = tmp_path / "inflections.tsv", tmp_path / "memory.tsv"
    inflections.write_text("gehen\tging\tV;PST\nsehen\tsah\tV;PST;SG\n")
    memory.write_text("1\tHund\tdog\n2\tKatze\tcat\n")
    found = {
        (path, text): find_pairs([path], parse_columns(text)).describe()
        for path in (inflections, memory)
        for text in ("", "1,2", "3,1", "2,1")
    }
    assert "columns 1+3 and 2;" in found[inflections, ""]
    assert "columns 2 and 3;" in found[memory, ""]
    for path in (inflections, memory):
        assert "columns 1 and 2" in found[path, "1,2"]
        assert "columns 3 and 1" in found[path, "3,1"]
    assert "columns 3 and 2;" in found[memory, "2,1"]


def test_threads_that_were_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # type: ignore[arg-type]  # must not be reached
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    use_threads(3)
    assert os.environ["OMP_NUM_THREADS"] == "3"


def test_threads_by_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heedful.cli.options.physical_cores", lambda: 5)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    use_threads(0)
    assert os.environ["OMP_NUM_THREADS"] == "7"
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS")
    use_threads(0)
    assert os.environ["OMP_NUM_THREADS"] == "5"
    assert torch.get_num_threads() == 5
    torch.set_num_threads(before)


def test_devices():
    torch = pytest.importorskip("torch")
    assert choose_device("cpu") == "cpu"
    assert choose_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(UsageError, match="known: auto, cpu"):
        choose_device("gpu")
    with pytest.raises(UsageError, match="PyTorch sees"):
        choose_device("cuda:99")


@pytest.mark.parametrize("name", ["meta", "xla", "hpu", "cpu:7", ""])
def test_devices_that_heedful_does_not_run_on(name: str):
    pytest.importorskip("torch")
    with pytest.raises(UsageError, match="known: auto, cpu"):
        choose_device(name)


@pytest.mark.parametrize(("threads", "chosen", "number"), [(0, "3", 3), (0, "3,2", 3), (4, "1", 4)])
def test_more_threads_than_processors(
    threads: int, chosen: str, number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setitem(sys.modules, "torch", None)  # type: ignore[arg-type]  # must not be reached
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.setenv("OMP_NUM_THREADS", chosen)
    monkeypatch.setattr("heedful.cli.options.processors", lambda: number)
    use_threads(threads)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("heedful.cli.options.processors", lambda: number - 1)
    use_threads(threads)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert f"may use {number - 1} processors" in lines[0]


@pytest.mark.parametrize("number", ["1", "64", " 8", "4,2"])
def test_a_number_of_threads_in_the_environment_is_left_alone(number: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", number)
    use_threads(0)
    assert os.environ["OMP_NUM_THREADS"] == number


@pytest.mark.parametrize("number", ["0", "-1", "1000000000", "9" * 5000, "nan", "4,", "\uff11"])
def test_no_number_of_threads_in_the_environment(number: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OMP_NUM_THREADS", number)
    with pytest.raises(UsageError, match="OMP_NUM_THREADS"):
        use_threads(0)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_number_has_an_upper_and_a_lower_bound(command: str):
    group: Any = typer.main.get_command(_app([command]))
    parameters = getattr(group, "commands", {command: group})[command].params
    numbers = [each for each in parameters if each.metavar in ("INTEGER", "FLOAT")]
    assert "threads" in {each.name for each in numbers}
    assert [] == [each.name for each in numbers if each.min is None or each.max is None]


@pytest.mark.parametrize(
    "option", ["--beam=1000000000", "--nbest=1000000000", "--groups=1000000000", "--threads=100000000", "--beam=1e30"]
)
def test_numbers_out_of_range_are_refused_at_once(option: str):
    done = heedful("translate", "no.model", "text", option)
    assert done.code == 2
    assert len(done.errors) == 1
    assert option.partition("=")[0] in done.err


def test_devices_without_pytorch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert choose_device("auto") == "cpu"
    with pytest.raises(ModuleNotFoundError):
        choose_device("cuda")
