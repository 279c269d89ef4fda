"""Commands that answer lines: every text has its answer in order, whatever is wrong with some of them."""

import io
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from heedful.cli.lines import answer_lines, opened_output, require_one
from heedful.cli.messages import Messages
from heedful.errors import UsageError
from tests.architecture.package import SOURCE


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


def test_a_text_that_is_the_name_of_a_file_has_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "news.txt"
    path.write_text("one\n", encoding="utf-8")
    answer(str(path), "a\0b", "x" * 5000)
    complaint = (
        f"heedful: warning: {path}: taken as a text, though a file has this name; for its lines: --input {path}\n"
    )
    assert capsys.readouterr().err.startswith(complaint)
    answer_lines(shout, [str(path)], None, None, Messages(False), 9, 9999, are_paths=True)
    assert "taken as a text" not in capsys.readouterr().err


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
    assert capsys.readouterr() == ("0 A\n1 B\n", "Type a text and press Enter. To leave: Ctrl-D\n> > > \n")


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param(b"ac\x1b[Db\n", "0 ABC", id="left arrow"),
        pytest.param(b"ab\n\x1b[Ac\n", "1 ABC", id="history"),
        pytest.param(b"a\tb\n", "0 A\tB", id="tab"),
        pytest.param("编\x7f编辑\n".encode(), "0 编辑", id="backspace over Chinese"),
        pytest.param(b"a\xffb\n", "0 A\N{REPLACEMENT CHARACTER}B", id="not UTF-8"),
    ],
)
def test_lines_are_edited_at_the_keyboard(keys: bytes, expected: str):
    import pty

    program = "from tests.cli.test_lines import answer; answer(window_lines=9); print('left')"
    environment = os.environ | {
        "PYTHONPATH": f"{SOURCE}{os.pathsep}{SOURCE.parent}",
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
    }
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    try:
        shown = _shown_until(ours, "> ")
        assert "To leave: Ctrl-D" in shown
        for line in keys.splitlines(keepends=True):
            os.write(ours, line)
            shown += _shown_until(ours, "\r\n> ")
        os.write(ours, b"\x04")
        shown += _shown_until(ours, "left")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert expected in shown.replace("\r", "").split("\n")


def _shown_until(terminal: int, end: str) -> str:
    """Text that a terminal shows, read until it ends so, or until nothing more comes."""
    shown = b""
    while select.select([terminal], [], [], 60.0)[0]:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the other side has closed
            break
        if end.encode() in shown:
            break
    return shown.decode(errors="replace")


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
