import pytest

from heedful.cli.messages import MOST_WARNINGS, Messages, RepeatedWarning, aligned


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


def test_aligned_nothing():
    assert aligned([]) == ""
