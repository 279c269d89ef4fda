"""Commands that answer lines: every text has its answer in order, whatever is wrong with some of them."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from heedful.cli.lines import answer_lines, opened_output, require_one
from heedful.cli.messages import Messages
from heedful.errors import UsageError


def shout(window: list[str], first_index: int) -> Iterator[tuple[str, bool]]:
    """Capitals behind the index; texts of more than five characters are cut."""
    for index, text in enumerate(window, first_index):
        yield f"{index} {text[:5].upper()}\n", len(text) > 5


def answer(*texts: str, source: Path | None = None, target: Path | None = None, window_lines: int = 2) -> None:
    answer_lines(shout, texts, source, target, Messages(False), window_lines, 5)


@pytest.mark.parametrize("window_lines", [1, 2, 9])
def test_every_text_has_its_answer_in_order(window_lines: int, capsys: pytest.CaptureFixture[str]):
    answer("a", "", "long text", window_lines=window_lines)
    out, err = capsys.readouterr()
    assert out == "0 A\n1 \n2 LONG \n"
    assert err == "heedful: warning: argument:3: cut after 5 tokens\n"


def test_bytes_that_are_not_text_are_said_and_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(b"ok\n\xff\n")
    answer(source=source, target=target)
    assert target.read_text(encoding="utf-8") == "0 OK\n1 \N{REPLACEMENT CHARACTER}\n"
    assert "in.txt:2: not UTF-8" in capsys.readouterr().err


def test_a_terminal_is_answered_line_by_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    windows: list[int] = []

    def counted(window: list[str], first_index: int) -> Iterator[tuple[str, bool]]:
        windows.append(len(window))
        yield from shout(window, first_index)

    monkeypatch.setattr("sys.stdin", Terminal(io.BytesIO(b"a\nb\n")))
    answer_lines(counted, (), None, None, Messages(False), 9, 5)
    assert windows == [1, 1]
    assert capsys.readouterr() == ("0 A\n1 B\n", "> > > \n")


def test_a_file_gets_its_name_when_it_is_complete(tmp_path: Path):
    target = tmp_path / "out.txt"

    def stopped() -> None:
        with opened_output(target) as stream:
            stream.write("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        stopped()
    assert not target.exists()


def test_texts_and_a_file_are_refused_together():
    require_one(None, Path("a"))
    require_one(["a"], None)
    with pytest.raises(UsageError, match="not both"):
        require_one(["a"], Path("a"))


def test_an_input_and_a_file_of_a_model_are_not_overwritten(tmp_path: Path):
    data, link, model = tmp_path / "data.txt", tmp_path / "link.txt", tmp_path / "some.model"
    data.write_text("a\n")
    link.symlink_to(data)
    model.mkdir()
    (model / "heedful.json").write_text("{}")
    for target, message in ((data, "read by this command"), (link, "read by this command")):
        with pytest.raises(UsageError, match=message):
            answer_lines(shout, (), data, target, Messages(False), 9, 5)
    with pytest.raises(UsageError, match=r"heedful\.json: belongs to the model in .*some\.model"):
        answer_lines(shout, (), data, model / "heedful.json", Messages(False), 9, 5)
    assert data.read_text() == "a\n"
    assert (model / "heedful.json").read_text() == "{}"
    answer_lines(shout, (), data, model / "new.txt", Messages(False), 9, 5)
    assert (model / "new.txt").read_text() == "0 A\n"
