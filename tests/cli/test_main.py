"""The command as a whole: finding commands, help, one line for every failure, exit codes."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import heedful.cli.main as module
from heedful import __version__
from heedful.cli.main import COMMANDS
from heedful.cli.options import Debug, Quiet
from heedful.errors import FileRefused
from tests.architecture.package import SOURCE
from tests.cli.command import Done, heedful

ENVIRONMENT = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}


def fails(monkeypatch: pytest.MonkeyPatch, error: BaseException, *more: str) -> Done:
    """Output for an error inside a command."""

    def broken(*values: object, **named: object) -> None:
        raise error

    monkeypatch.setattr("heedful.cli.doctor.run", lambda debug=False: broken())
    return heedful("doctor", *more)


def test_help_lists_every_command_with_its_line():
    done = heedful("--help")
    assert done.code == 0
    assert done.err == ""
    for command in COMMANDS:
        assert any(line.startswith(f"  {command} ") for line in done.out.split("\n")), command
    assert "Train a model from pairs of texts" in done.out


def test_no_arguments_are_greeted_in_ten_lines():
    done = heedful()
    lines = done.out.rstrip("\n").split("\n")
    assert (done.code, done.err) == (0, "")
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 110
    assert {line.split()[1] for line in lines if line.startswith("  heedful ")} < set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_takes_the_global_options(command: str):
    done = heedful(command, "--device", "cpu", "--threads", "1", "--quiet", "--debug", "--help")
    assert (done.code, done.err) == (0, "")
    assert f"heedful {command}" in done.out


@pytest.mark.parametrize(
    ("words", "is_quiet"),
    [
        (("doctor",), False),
        (("-q", "doctor"), True),
        (("doctor", "-q"), True),
        (("--quiet", "doctor"), True),
        (("-q", "doctor", "--quiet"), True),
        (("--debug", "--quiet", "doctor"), True),
    ],
)
def test_quiet_stands_before_a_command_or_behind_it(
    words: tuple[str, ...], is_quiet: bool, monkeypatch: pytest.MonkeyPatch
):
    def shown(quiet: Quiet = False, debug: Debug = False) -> None:
        print(quiet)

    monkeypatch.setattr("heedful.cli.doctor.run", shown)
    assert heedful(*words) == (0, f"{is_quiet}\n", "")


def test_version():
    assert heedful("--version") == (0, f"heedful {__version__}\n", "")


def test_a_misspelt_command_is_guessed():
    assert heedful("trian", "x.tsv") == (2, "", "heedful: error: no command 'trian'; did you mean 'train'?\n")


def test_an_unknown_command_lists_all():
    done = heedful("zzz")
    assert done.code == 2
    assert f"known: {', '.join(COMMANDS)}" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["translate"], "translate: missing argument 'MODEL'; see: heedful translate --help"),
        (["translate", "m", "--bem", "3"], "translate: no such option --bem; did you mean '--beam'?"),
        (["translate", "m", "--beam", "0"], "'--beam'"),
        (["train", "x", "--minutes", "soon"], "'--minutes'"),
        (["list", "scores", "more"], "unexpected extra argument"),
        (["--nonsense"], "no such option"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_2(arguments: list[str], said: str):
    done = heedful(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert len(done.errors) == 1
    assert said in done.err


def test_only_the_command_that_runs_is_imported():
    program = (
        "import sys; from heedful.cli.main import main; main(['list', 'metrics']); "
        "print(sorted(m for m in sys.modules if m.startswith('heedful.cli.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert "heedful.cli.list" in done.stderr
    assert not any(f"heedful.cli.{command}'" in done.stderr for command in COMMANDS if command != "list")


def test_an_unexpected_error_is_one_line_that_asks_for_debug(monkeypatch: pytest.MonkeyPatch):
    done = fails(monkeypatch, RuntimeError("two\nlines"))
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert done.errors == [
        "heedful: error: RuntimeError: two lines: this is a bug in heedful; run again with --debug for the traceback"
    ]


def test_debug_shows_the_traceback_and_the_line(monkeypatch: pytest.MonkeyPatch):
    done = fails(monkeypatch, FileRefused("m/heedful.json: damaged"), "--debug")
    assert done.code == 3
    assert "Traceback (most recent call last)" in done.err
    assert done.errors == ["heedful: error: m/heedful.json: damaged"]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "heedful: interrupted\n"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (PermissionError(13, "Permission denied", "/x/y"), 2, "heedful: error: /x/y: permission denied\n"),
    ],
)
def test_errors_that_typer_would_swallow(monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str):
    assert fails(monkeypatch, error) == (code, "", line)


def test_python_m_heedful_prints_utf8_whatever_python_was_told():
    environment = ENVIRONMENT | {"PYTHONUTF8": "1", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "heedful", "list", "zä"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 2
    assert "no table 'zä'".encode() in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_exit_5():
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "heedful", "list", "metrics"]
        done = subprocess.run(command, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 5
    assert done.stderr.startswith(b"heedful: error: no space left on device; ")
    assert done.stderr.count(b"\n") == 1


def test_a_reader_that_leaves_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "heedful", "list", "metrics"]
    done = subprocess.run(command, env=ENVIRONMENT, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_messages_do_not_go_into_results_where_standard_error_is_closed():
    command = f"{shlex.quote(sys.executable)} -m heedful list nothing 2>&-"
    done = subprocess.run(command, shell=True, env=ENVIRONMENT, stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_results_without_a_standard_output_are_an_error():
    command = f"{shlex.quote(sys.executable)} -m heedful list scores >&-"
    done = subprocess.run(command, shell=True, env=ENVIRONMENT, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (2, b"heedful: error: standard output is closed\n")


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_closed_standard_input_is_empty():
    command = f"{shlex.quote(sys.executable)} -m heedful list scores <&-"
    done = subprocess.run(command, shell=True, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"additive" in done.stdout


INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let background jobs ignore it
import heedful.__main__ as command

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "heedful.cli.main":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["heedful", "--version"]
sys.exit(command.run())
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_while_modules_are_imported_is_quiet():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], env=ENVIRONMENT, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


def test_an_ignored_ctrl_c_stays_ignored():
    ignored = INTERRUPTED.replace("import heedful", "signal.signal(signal.SIGINT, signal.SIG_IGN)\nimport heedful")
    done = subprocess.run([sys.executable, "-c", ignored], env=ENVIRONMENT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize("words", [("list", "scores"), ("trian",)], ids=str)
def test_readers_that_left_both_streams_give_no_other_exit_code(words: tuple[str, ...]):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "heedful", *words]
    done = subprocess.run(command, env=ENVIRONMENT, stdout=writer, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == (141 if words[0] == "list" else 2)


def test_a_reader_of_help_may_leave():
    command = [sys.executable, "-m", "heedful", "train", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


@pytest.mark.parametrize("step", ["_open_closed_streams", "_prepare_process", "_flush_or_give_up"])
def test_ctrl_c_before_and_after_the_command_ends_it_quietly(step: str, monkeypatch: pytest.MonkeyPatch):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, step, interrupt)
    assert module.main(["--version"]) == 130
