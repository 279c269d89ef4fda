import csv
import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.package import SOURCE
from tests.cli.command import heedful

GOOD = "".join(f"source number {number}\ttarget number {number}\n" for number in range(1200))


def test_sound_data_are_exit_0(tmp_path: Path):
    data = tmp_path / "a.tsv"
    data.write_bytes(GOOD.encode())
    done = heedful("check", data, "--strict")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("1,200 rows: 0 errors, 0 warnings, 0 notes\n")
    assert "1,200 of 1,200 rows usable, 17 and 17 characters on average, Latin and Latin" in done.out


def test_warnings_fail_only_when_strict(tmp_path: Path):
    data = tmp_path / "a.tsv"
    data.write_bytes((GOOD + "a bell \x07\tA BELL\n" + GOOD[:3000]).encode())
    done = heedful("check", data)
    assert done.code == 0
    assert "warning: " in done.out
    assert "1 of 1,290 rows contains control characters" in done.out
    assert "repeat an earlier row" in done.out  # a note, for words
    assert heedful("check", data, "--strict") == (2, done.out, "")


def test_errors_fail(tmp_path: Path):
    data = tmp_path / "a.tsv"
    data.write_bytes(GOOD.encode() + 20 * b"a\xff\tb\n")
    done = heedful("check", data)
    assert done.code == 2
    assert "error: " in done.out
    assert done.err == ""


def test_json(tmp_path: Path):
    data, dev = tmp_path / "a.tsv", tmp_path / "dev.tsv"
    data.write_bytes(GOOD.encode())
    dev.write_bytes(GOOD[:3000].encode())
    done = heedful("check", data, "--dev", dev, "--format", "json")
    facts = json.loads(done.out)
    assert [file["role"] for file in facts["files"]] == ["train", "dev"]
    assert "leaked pair" in [finding["kind"] for finding in facts["findings"]]


def test_a_terminal_gets_a_table_that_shows_texts_as_they_are(tmp_path: Path, monkeypatch):
    import io
    import sys

    from heedful.cli.check import _draw
    from heedful.data.check import check_corpus

    data = tmp_path / "[b]a.tsv"
    data.write_bytes((GOOD + GOOD[:3000]).encode())
    report = check_corpus([data])
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", "400")
    _draw(report)
    drawn = sys.stdout.getvalue()
    assert "[b]a.tsv" in drawn
    assert report.summary() in drawn
    assert "training counts them as often" in drawn


def test_data_may_come_from_standard_input(tmp_path: Path):
    content = "".join(f"word {number}\tWort {number}\n" for number in range(1200))
    (tmp_path / "a.tsv").write_text(content)
    by_file, by_input = (heedful("check", name, stdin=content.encode()) for name in (tmp_path / "a.tsv", "-"))
    assert by_input.code == by_file.code == 0
    assert "1,200 of 1,200 rows usable" in by_input.out
    assert "standard-input: separated by tabs" in by_input.out
    done = heedful("check", "-", "--test", "-", stdin=content.encode())
    assert done.code == 2
    assert "standard-input: empty" in done.out


ROWS = [(f"word {number}", f"Wort {number}") for number in range(1200)]
TEXTS = {
    "separated by ','": "".join(f"{source},{target}\n" for source, target in ROWS),
    "keys 'source' and 'target'": "".join(
        json.dumps({"source": source, "target": target}) + "\n" for source, target in ROWS
    ),
    "separated by tabs": "".join(f"{source}, he said\t{target}\n" for source, target in ROWS),
}


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("form", TEXTS)
def test_the_format_of_standard_input_is_recognized(form: str, is_compressed: bool):
    content = TEXTS[form].encode()
    done = heedful("check", "-", stdin=gzip.compress(content, mtime=0) if is_compressed else content)
    assert done.code == 0, done.err
    assert form in done.out
    assert "1,200 of 1,200 rows usable" in done.out


def test_damaged_compressed_standard_input_is_refused():
    done = heedful("check", "-", stdin=b"\x1f\x8b" + bytes(100))
    assert done.code == 2
    assert "standard-input.gz" in done.out + done.err


def test_standard_input_is_not_left_behind(tmp_path: Path):
    program = "from heedful.cli.main import main; print(main(['check', '-']))"
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], input=GOOD.encode(), env=environment, capture_output=True)
    assert done.stdout.endswith(b"\n0\n"), done.stderr
    assert [*tmp_path.iterdir()] == []


def test_headings_and_names_of_files_steer_no_terminal(tmp_path: Path):
    data = tmp_path / "a\x1b[2J.csv"
    data.write_bytes(b"id,sou\x1b[2Jrce,tar\n1,a,b\n")
    done = heedful("check", data)
    assert "\x1b" not in done.out
    assert "a\\x1b[2J.csv" in done.out


def test_summaries_are_checked_for_what_training_does_with_them(tmp_path: Path):
    generator, data = random.Random(3), tmp_path / "sum.csv"
    rows = [[f"w{generator.randrange(800)}" for _ in range(60 if n < 2 else 700)] for n in range(60)]
    with data.open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [("article", "highlights"), *((" ".join(row), " ".join(row[:15])) for row in rows)]
        )
    done = heedful("check", data)
    assert done.code == 0, done.out
    assert "60 of 60 rows usable" in done.out
    assert f"{data}: targets are summaries of their sources; training cuts long sources" in done.out
    assert "over-long" not in done.out
    assert "different lengths" not in done.out
    assert "CR LF" not in done.out  # as CSV is written


def test_too_many_labels_are_exit_2(tmp_path: Path):
    data = tmp_path / "a.tsv"
    data.write_text("".join(f"text {n}\t{n}.5\n" for n in range(150)))
    done = heedful("check", data, "--task", "classification")
    assert done.code == 2
    assert "error: " in done.out
    assert "for numbers --set text.labels=number" in done.out
