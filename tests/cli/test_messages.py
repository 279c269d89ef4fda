import errno
import io

import pytest

from heedful.cli.lines import opened_output
from heedful.cli.messages import MOST_WARNINGS, Messages, RepeatedWarning, SummedWarning, aligned


def test_quiet_says_only_warnings(capsys: pytest.CaptureFixture[str]):
    quiet = Messages(is_quiet=True)
    quiet.say("reading")
    quiet.warn("cut")
    assert capsys.readouterr() == ("", "heedful: warning: cut\n")
    Messages(is_quiet=False).say("reading")
    assert capsys.readouterr() == ("", "reading\n")


@pytest.mark.parametrize("count", [0, 1, MOST_WARNINGS, MOST_WARNINGS + 1, 1000])
def test_many_warnings_end_in_their_number(capsys: pytest.CaptureFixture[str], count: int):
    repeated = RepeatedWarning(Messages(is_quiet=False), "lines were cut")
    for number in range(count):
        repeated.add(f"line {number}")
    repeated.close()
    lines = capsys.readouterr().err.split("\n")[:-1]
    assert lines[:MOST_WARNINGS] == [f"heedful: warning: line {n}" for n in range(min(count, MOST_WARNINGS))]
    last = [f"heedful: warning: ... {count:,} lines were cut in all"] if count > MOST_WARNINGS else []
    assert lines[MOST_WARNINGS:] == last


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, []),
        (1, ["row 2 is bad"]),
        (3, ["a.csv: 3 rows are bad: lines 2, 3, 4; the first: row 2 is bad"]),
        (900, ["a.csv: 900 rows are bad: lines 2, 3, 4, 5, 6, ...; the first: row 2 is bad"]),
    ],
)
def test_many_rows_are_one_warning(capsys: pytest.CaptureFixture[str], count: int, told: list[str]):
    summed = SummedWarning(Messages(is_quiet=True), "a.csv", "rows are bad")
    for number in range(2, count + 2):
        summed.add(number, f"row {number} is bad")
    summed.close()
    assert capsys.readouterr().err.splitlines() == [f"heedful: warning: {line}" for line in told]


def test_what_steers_a_terminal_is_shown(capsys: pytest.CaptureFixture[str]):
    Messages(is_quiet=False).say("word \x1b[2J\nnext\x9b1A \u202e")
    assert capsys.readouterr() == ("", "word \\x1b[2J\nnext\\x9b1A \\u202e\n")


class Refusing(io.TextIOWrapper):
    """Standard error that refuses all text."""

    def __init__(self, number: int) -> None:
        super().__init__(io.BytesIO())
        self.number = number

    def write(self, text: str, /) -> int:
        raise OSError(self.number, "refused")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EPIPE])
def test_messages_that_cannot_be_printed_are_no_error(number: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stderr", Refusing(number))
    messages = Messages(is_quiet=False)
    messages.say("reading")
    messages.warn("cut")


def test_aligned_nothing():
    assert aligned([]) == ""


def test_cells_steer_no_terminal():
    assert aligned([("languages", "de\x1b[2J")]) == "languages  de\\x1b[2J"


def test_results_on_a_terminal_steer_nothing(monkeypatch: pytest.MonkeyPatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, shown in ((Terminal(), "a\t\x1b[1mb\x1b[0m\\x1b[2J\n"), (io.StringIO(), "a\t\x1b[1mb\x1b[0m\x1b[2J\n")):
        monkeypatch.setattr("sys.stdout", stream)
        with opened_output(None) as output:
            output.writelines(["a\t\x1b[1mb\x1b[0m\x1b[2J\n"])
        assert stream.getvalue() == shown
