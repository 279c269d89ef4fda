"""Bad inputs: each gives one line with what, where and what to do, and the right exit code."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import Done, heedful
from tests.cli.conftest import Trained
from tests.thorough import sampled

PAIRS = "".join(f"word{number}\tWORD{number}\n" for number in range(30))
CHINESE = "".join(f"你好世界{number}\t我们去学校{number}\n" for number in range(30))
CSV = "".join(f'"word, {number}",WORD{number}\n' for number in range(30))
Write = Callable[[Path], list[str]]


def one_file(content: bytes) -> Write:
    def write(folder: Path) -> list[str]:
        (folder / "a.tsv").write_bytes(content)
        return [str(folder / "a.tsv")]

    return write


def csv_file(content: bytes) -> Write:
    def write(folder: Path) -> list[str]:
        (folder / "a.csv").write_bytes(content)
        return [str(folder / "a.csv")]

    return write


def two_files(first: bytes, second: bytes) -> Write:
    def write(folder: Path) -> list[str]:
        (folder / "a.de").write_bytes(first)
        (folder / "a.en").write_bytes(second)
        return [str(folder / "a.de"), str(folder / "a.en")]

    return write


def a_folder(folder: Path) -> list[str]:
    (folder / "a.tsv").mkdir()
    (folder / "a.tsv" / "pairs.tsv").write_bytes(PAIRS.encode())
    return [str(folder / "a.tsv")]


def a_misspelt_file(folder: Path) -> list[str]:
    (folder / "pairs.tsv").write_bytes(PAIRS.encode())
    return [str(folder / "pears.tsv")]


# Name -> what is handed in, and words of the message: what is wrong, where, and what to do.
REFUSED: dict[str, tuple[Write, list[str]]] = {
    "missing": (lambda folder: [str(folder / "a.tsv")], ["a.tsv", "no such file"]),
    "misspelt": (a_misspelt_file, ["pears.tsv", "no such file", "did you mean", "pairs.tsv"]),
    "folder": (a_folder, ["a.tsv", "a folder", "give a file", "pairs.tsv"]),
    "empty": (one_file(b""), ["a.tsv", "empty"]),
    "only empty lines": (one_file(b"\n\n\n"), ["a.tsv", "nothing but empty lines"]),
    "only headings": (one_file(b"source\ttarget\n"), ["a.tsv", "nothing but headings"]),
    "one pair": (one_file(b"a\tb\n"), ["a.tsv", "at least 10", "give more rows"]),
    "one column": (one_file(b"hello\nworld\n"), ["a.tsv:1", "column"]),
    "ragged": (one_file(PAIRS.encode() + b"lonely\n" * 2), ["a.tsv:31", "column", "1 more row of 32"]),
    "UTF-16 without mark": (one_file(PAIRS.encode("utf-16-le")), ["a.tsv", "UTF-16LE", "iconv"]),
    "GBK": (one_file(CHINESE.encode("gbk")), ["a.tsv:1:1", "GB18030", "iconv -f GB18030 -t UTF-8"]),
    "Latin-1": (one_file("für\tfor\n".encode("latin-1") * 30), ["a.tsv:1:2", "ISO-8859-1", "iconv"]),
    "bad bytes": (one_file(CHINESE.encode() + b"a\xff\tb\n" * 2), ["a.tsv:31:2", "0xFF", "iconv -c"]),
    "NUL": (one_file(PAIRS.encode() + b"a\0b\tc\n" * 2), ["a.tsv:31:2", "NUL", "remove it"]),
    "zip": (one_file(b"PK\x03\x04" + bytes(100)), ["a.tsv", "zip", "unzip"]),
    "binary": (one_file(bytes(range(256)) * 9), ["a.tsv", "binary"]),
    "cut-off gzip": (one_file(gzip.compress(PAIRS.encode() * 99, mtime=0)[:80]), ["a.tsv", "damaged gzip"]),
    "CSV with open quotes": (csv_file(CSV.encode() + b'a,"b\nc,"d,\n'), ["a.csv:31", "not closed"]),
    "CSV with text after a quote": (csv_file(b'"a" b,c\n' + CSV.encode()), ["a.csv:1", "double the quotes"]),
    "ragged CSV": (csv_file(CSV.encode() + b"a,b,c\n" * 2), ["a.csv:31", "3 columns", "separators ','"]),
    "CSV of one column": (csv_file(b"hello\nworld\n"), ["a.csv:1", "1 column", "separated by ','"]),
    "empty CSV": (csv_file(b"\xef\xbb\xbf"), ["a.csv", "empty"]),
    "CSV of headings": (csv_file(b"source,target\n"), ["a.csv", "nothing but headings"]),
    "unequal": (two_files(b"a\n" * 30, b"b\n" * 29), ["a.de has 30 lines", "a.en has 29", "drift apart", "mend"]),
    "TSV and another": (
        lambda folder: [*one_file(PAIRS.encode())(folder), *two_files(b"a\n", b"b\n")(folder)[:1]],
        ["a.tsv", "holds both sides", "give it alone"],
    ),
    "three files": (
        lambda folder: one_file(PAIRS.encode())(folder) * 3,
        ["expected one file of pairs, or two aligned files, got 3"],
    ),
    "all over-long": (one_file(("x" * 1_000_000 + "\ty\n").encode() * 2), ["a.tsv", "2 too long", "give more rows"]),
}


def is_one_line(done: Done) -> bool:
    return len(done.errors) == 1 and done.err.endswith(done.errors[0] + "\n") and "Traceback" not in done.err


@pytest.mark.parametrize("name", REFUSED)
def test_training_refuses(name: str, tmp_path: Path, settings: Path):
    write, words = REFUSED[name]
    done = heedful("train", *write(tmp_path), "--config", settings, "--out", tmp_path / "m")
    assert (done.code, done.out) == (2, "")
    assert is_one_line(done), done.err
    assert [word for word in words if word not in done.errors[0]] == [], done.errors[0]


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "three files"])
def test_check_finds_the_same(name: str, tmp_path: Path):
    if name == "one pair":
        pytest.skip("few rows are no error of the file")
    write, _ = REFUSED[name]
    done = heedful("check", *write(tmp_path))
    assert done.code == 2
    assert "Traceback" not in done.err


# Name -> what is handed in, and what is said of it; a model is trained all the same.
TAKEN: dict[str, tuple[Write, str]] = {
    "CR LF": (one_file(PAIRS.replace("\n", "\r\n").encode()), "30 of 30 lines end in CR LF"),
    "byte order mark": (one_file(b"\xef\xbb\xbf" + PAIRS.encode()), "byte order mark left out"),
    "headings": (one_file(b"English\tGerman\n" + PAIRS.encode()), "headings left out"),
    "gzip": (one_file(gzip.compress(PAIRS.encode(), mtime=0)), "30 of 30 pairs kept"),
    "one ragged row": (one_file(PAIRS.encode() + b"lonely\n"), "1 of 31 rows left out as unreadable: line 31"),
    "one bad byte": (one_file(CHINESE.encode() + b"a\xff\tb\n"), "1 of 31 rows left out as unreadable: line 31"),
    "CSV with a line break in a cell": (csv_file(CSV.encode() + b'"a\nb",c\n'), "31 of 31 pairs kept"),
    "the first pair": (
        one_file(PAIRS.encode()),
        "a.tsv: separated by tabs, columns 1 and 2; first pair: 'word0' -> 'WORD0'",
    ),
    "CSV": (csv_file(CSV.encode()), "a.csv: separated by ',', columns 1 and 2; first pair: 'word, 0' -> 'WORD0'"),
    "Excel's CSV": (
        csv_file(b"\xef\xbb\xbfsource;target\r\n" + CSV.replace("\n", "\r\n").replace(",W", ";W").encode()),
        "a.csv: separated by ';', columns 1 (source) and 2 (target); first pair: 'word, 0' -> 'WORD0'",
    ),
    "Excel's TSV": (
        one_file(b"\xef\xbb\xbfsource_text\ttarget_text\r\n" + CSV.replace(",W", "\tW").replace("\n", "\r\n").encode()),
        "separated by tabs, quoted as by Excel, columns 1 (source_text) and 2 (target_text); first pair: 'word, 0'",
    ),
    "no last line end": (one_file(PAIRS.encode()[:-1]), "30 of 30 pairs kept"),
    "blank lines": (one_file(b"\n\t\n" + PAIRS.encode()), "30 of 32 pairs kept (2 empty left out)"),
    "a line of a million": (one_file(PAIRS.encode() + b"x" * 1_000_000 + b"\ty\n"), "1 too long left out"),
    "odd separators": (one_file(PAIRS.encode() + "a\u2028b\x85c\td\n".encode()), "31 of 31 pairs kept"),
}


@sampled(3)
@pytest.mark.parametrize("name", TAKEN)
def test_training_takes(name: str, tmp_path: Path, settings: Path):
    write, said = TAKEN[name]
    short = ("--set", "training.max_steps=1", "--set", "training.validate_every=1")
    done = heedful("train", *write(tmp_path), "--config", settings, "--out", tmp_path / "m", *short)
    assert done.code == 0, done.err
    assert said in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--preset", "smal"], ["--preset smal", "did you mean 'small'"]),
        (["--set", "training.max_step=5"], ["training.max_step", "unknown key", "did you mean 'max_steps'"]),
        (["--set", "model.dropout=2"], ["model", "dropout", "less than 1"]),
        (["--set", "model.kind=tansformer"], ["model.kind", "did you mean 'transformer'"]),
        (["--set", "training.max_steps"], ["--set 'training.max_steps'", "expected key.path=value"]),
        (["--config", "nowhere.toml"], ["nowhere.toml", "no such configuration file"]),
        (["--columns", "one"], ["--columns 'one'", "such as 2,1 or english,german"]),
        (["--columns", "word0,two"], ["a.tsv:1", "no column 'two'"]),
        (["--columns", "1,1"], ["columns 1,1", "two different numbers"]),
        (["--columns", "1,5"], ["a.tsv:1", "column"]),
        (["--device", "gpu"], ["--device 'gpu'", "known: auto, cpu"]),
        (["--dev", "nowhere.tsv"], ["nowhere.tsv", "no such file"]),
        (["--test", "nowhere.tsv"], ["nowhere.tsv", "no such file"]),
        (["--out", "a.tsv"], ["a.tsv", "not a folder", "choose another --out"]),
        (["--out", "."], ["no training run", "choose another --out"]),
    ],
)
def test_training_refuses_options(
    arguments: list[str], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_bytes(PAIRS.encode())
    done = heedful("train", "a.tsv", *arguments)
    assert (done.code, done.out) == (2, "")
    assert is_one_line(done), done.err
    assert [word for word in words if word not in done.errors[0]] == [], done.errors[0]


COMMANDS_OF_MODELS = (("translate", "abc"), ("evaluate", "DATA"), ("info",))


@pytest.mark.parametrize("command", COMMANDS_OF_MODELS, ids=lambda command: command[0])
def test_what_is_no_model(command: tuple[str, ...], trained: Trained, tmp_path: Path):
    more = [str(trained.data) if word == "DATA" else word for word in command[1:]]
    done = heedful(command[0], tmp_path / "none.model", *more)
    assert (done.code, done.out) == (2, "")
    assert is_one_line(done)
    assert "none.model: no such model" in done.errors[0]
    done = heedful(command[0], tmp_path, *more)
    assert done.code == 2
    assert "not a model: it has no heedful.json" in done.errors[0]
    done = heedful(command[0], trained.data, *more)
    assert done.code == 2
    assert "words.tsv: not a folder; models beside it: words.model" in done.errors[0]


@pytest.mark.parametrize("command", COMMANDS_OF_MODELS, ids=lambda command: command[0])
@pytest.mark.parametrize("kind", ["config.toml", "model-", "tokenizer", "heedful.json"])
def test_a_changed_file_is_refused(command: tuple[str, ...], kind: str, trained: Trained, tmp_path: Path):
    model = tmp_path / "m"
    shutil.copytree(trained.model, model)
    (path,) = (path for path in model.iterdir() if path.name.startswith(kind))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x80
    path.write_bytes(content)
    more = [str(trained.data) if word == "DATA" else word for word in command[1:]]
    done = heedful(command[0], model, *more)
    assert (done.code, done.out) == (3, "")
    assert is_one_line(done)
    assert path.name in done.errors[0]


def test_a_missing_file_is_refused(trained: Trained, tmp_path: Path):
    model = tmp_path / "m"
    shutil.copytree(trained.model, model)
    next(model.glob("model-*.safetensors")).unlink()
    done = heedful("info", model)
    assert done.code == 3
    assert "missing; copy the whole folder again" in done.errors[0]
