"""Journal of corrections: nothing that was confirmed is lost, whatever happens to the file or beside it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from heedful.data import corrections
from heedful.data.corrections import MOST_CHARACTERS, CorrectionJournal
from heedful.errors import DamagedFile, NewerFormat, ResourceError, UsageError
from heedful.files import append
from heedful.files.formats import CORRECTIONS_FORMAT, KEY
from heedful.files.records import CHECKSUM, checksum
from tests.architecture.package import ROOT, SOURCE
from tests.cli.command import disk_quota

SAMPLE = ROOT / "tests" / "samples" / "corrections" / "1.jsonl"


def normalize(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def journal_in(folder: Path) -> CorrectionJournal:
    return CorrectionJournal(folder / corrections.NAME, normalize)


def in_force(journal: CorrectionJournal) -> list[tuple[str, str]]:
    return [(one.source, one.correction) for one in journal.read().corrections]


@pytest.fixture
def journal(tmp_path: Path) -> CorrectionJournal:
    return journal_in(tmp_path)


def test_the_newest_correction_of_a_source_is_in_force(journal: CorrectionJournal):
    assert in_force(journal) == []
    journal.add([("a", "1"), ("b", "2")])
    journal.add([("a", "3")])
    assert in_force(journal) == [("b", "2"), ("a", "3")]
    assert journal.read().corrections[0].time[-6:] == "+00:00"


def test_sources_that_the_tokenizer_does_not_tell_apart_are_one(journal: CorrectionJournal):
    journal.add([("caf\u00e9", "1"), (" cafe\u0301 ", "2")])
    assert in_force(journal) == [(" cafe\u0301 ", "2")]


def test_undo_withdraws_the_newest_and_brings_back_the_one_before(journal: CorrectionJournal):
    for source, correction in (("a", "1"), ("b", "2"), ("a", "3"), ("b", "4")):
        journal.add([(source, correction)])
    assert journal.undo("a").correction == "3"
    assert in_force(journal) == [("a", "1"), ("b", "4")]
    assert [journal.undo().correction for _ in "xyz"] == ["4", "2", "1"]
    assert in_force(journal) == []
    for source in (None, "a"):
        with pytest.raises(UsageError, match="no correction"):
            journal.undo(source)


def test_an_entry_that_occurs_twice_is_withdrawn_once(journal: CorrectionJournal):
    journal.add([("a", "1"), ("a", "1")])
    journal.undo()
    assert in_force(journal) == [("a", "1")]


@pytest.mark.parametrize(
    ("pair", "error"),
    [
        (("", "x"), "source is blank"),
        ((" \t", "x"), "source is blank"),
        (("x", ""), "correction is blank"),
        (("x\ny", "x"), "source has a line feed"),
        (("x", "\udc80"), "correction is not UTF-8"),
        (("x" * (MOST_CHARACTERS + 1), "x"), "source is longer"),
    ],
)
def test_what_is_no_correction_is_refused_with_all_beside_it(
    journal: CorrectionJournal, pair: tuple[str, str], error: str
):
    with pytest.raises(UsageError, match=error):
        journal.add([("good", "better"), pair])
    assert not journal.path.exists()


# ------------------------------------------------------------------------------------------------- long journals


def lines_read(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Lines that are read from now on."""
    read: list[bytes] = []
    facts = corrections._facts
    monkeypatch.setattr(corrections, "_facts", lambda line, path: (read.append(line), facts(line, path))[1])
    return read


def test_the_cost_of_a_correction_does_not_grow_with_the_journal(
    journal: CorrectionJournal, monkeypatch: pytest.MonkeyPatch
):
    journal.add([(str(index), "x") for index in range(1000)])
    assert len(in_force(journal)) == 1000
    read = lines_read(monkeypatch)
    for index in range(10):
        journal.add([(f"new {index}", "y")])
        assert len(in_force(journal)) == 1001 + index
    journal.undo()
    assert len(in_force(journal)) == 1009
    assert len(read) < 50


def test_withdrawals_are_not_searched_for(journal: CorrectionJournal):
    """Of one source, the oldest first, which only processes that correct at once write: 40 s once."""
    count = 20_000
    stamped = [CORRECTIONS_FORMAT.stamp({"source": "a", "correction": f"{n}", "time": f"{n}"}) for n in range(count)]
    names = [checksum(facts) for facts in stamped]
    lines = [json.dumps({**facts, CHECKSUM: name}) for facts, name in zip(stamped, names, strict=True)]
    lines += [corrections._line({"withdraws": name, "time": "x"}).decode().strip() for name in names[:-1]]
    journal.path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    started = time.process_time()
    assert in_force(journal) == [("a", str(count - 1))]
    assert time.process_time() - started < 5


def test_a_file_that_was_written_anew_is_read_anew(journal: CorrectionJournal):
    journal.add(PAIRS)
    assert in_force(journal) == PAIRS
    other = CorrectionJournal(journal.path.with_name("other"), normalize)
    other.add([*PAIRS[1:], ("fünf", "five"), ("sechs", "six")])
    content = other.path.read_bytes()
    journal.path.write_bytes(content)  # longer than before, in the same file
    assert in_force(journal) == in_force(other)
    planted = journal_in(journal.path.parent)
    planted.path.write_bytes(b"")
    planted.add(PAIRS)
    assert in_force(planted) == PAIRS
    planted._end = b""  # without the end of what was read, it seems to have grown
    planted.path.write_bytes(content)
    assert in_force(planted) != in_force(other)


# ------------------------------------------------------------------------------------------------------- damage

PAIRS = [("eins", "one"), ("zwei\u2028", "two\t"), ("дrei 三", "three"), ("vier", "four")]


def lost_by_cutting(folder: Path) -> list[str]:
    """Cut the journal at every byte of its last line, and say where a confirmed line, before or after, was lost."""
    whole = journal_in(folder)
    whole.add(PAIRS[:-1])
    size = whole.path.stat().st_size
    whole.add(PAIRS[-1:])
    content = whole.path.read_bytes()
    losses: list[str] = []
    for end in range(size, len(content) + 1):
        whole.path.write_bytes(content[:end])
        read = whole.read()
        is_whole = end >= len(content) - 1  # all but the line feed is there
        expected = PAIRS if is_whole else PAIRS[:-1]
        if in_force(whole) != expected or bool(read.damaged) != (size < end < len(content) - 1):
            losses.append(f"{end}: read")
        whole.add([("neu", "new")])
        whole.undo("eins")
        if in_force(whole) != [*expected[1:], ("neu", "new")]:
            losses.append(f"{end}: appended")
    return losses


@pytest.fixture
def no_syncs(monkeypatch: pytest.MonkeyPatch):
    """The disk is not waited for, where only the content of files matters."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.mark.usefixtures("no_syncs")
def test_a_kill_at_any_byte_of_an_append_loses_nothing_that_was_confirmed(tmp_path: Path):
    assert lost_by_cutting(tmp_path) == []


@pytest.mark.usefixtures("no_syncs")
def test_gluing_a_line_to_a_cut_one_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(corrections, "append_whole", lambda path, descriptor, content: os.write(descriptor, content))
    assert len(lost_by_cutting(tmp_path)) > 10


def damage_unnoticed(folder: Path) -> list[int]:
    """Bytes of the second line of which a changed bit is not noticed, or costs another line."""
    whole = journal_in(folder)
    whole.add(PAIRS)
    content = whole.path.read_bytes()
    start = content.index(b"\n") + 1
    unnoticed: list[int] = []
    for index in range(start, content.index(b"\n", start)):
        for bit in range(8):
            whole.path.write_bytes(content[:index] + bytes([content[index] ^ 1 << bit]) + content[index + 1 :])
            if not whole.read().damaged or in_force(whole) != [PAIRS[0], *PAIRS[2:]]:
                unnoticed.append(index - start)
    return unnoticed


def test_a_changed_bit_costs_its_line_alone(tmp_path: Path):
    assert damage_unnoticed(tmp_path) == []


def test_a_changed_version_costs_its_line_alone_while_lines_are_added_and_withdrawn(journal: CorrectionJournal):
    journal.add(PAIRS)
    content = journal.path.read_bytes()
    journal.path.write_bytes(content.replace(b'"format": 1', b'"format": 3', 1))
    journal.add([("neu", "new")])
    assert journal.undo("vier").correction == "four"
    assert in_force(journal) == [*PAIRS[1:3], ("neu", "new")]
    assert journal.read().damaged == (1,)


def test_without_a_checksum_changed_bits_would_be_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(corrections, "_fits_checksum", lambda facts: facts.get("format") == 1 and "sha256" in facts)
    assert damage_unnoticed(tmp_path)


def test_a_journal_cut_in_the_middle_keeps_its_whole_lines(journal: CorrectionJournal):
    journal.add(PAIRS)
    content = journal.path.read_bytes()
    lines = content.split(b"\n")
    start = len(lines[0]) + 1 + 10
    journal.path.write_bytes(content[:start] + content[start + len(lines[1]) :])  # parts of lines 2 and 3 are one line
    assert in_force(journal) == [PAIRS[0], PAIRS[3]]
    error = journal.read().error(journal.path)
    assert error == f"{journal.path}:2: damaged; left out, the other corrections stay in force"


@pytest.mark.parametrize("line", [b"\xff\xfe", b"[]", b"{}", b'"x"', b"{" * 5000, b'{"format": true}', b"\0" * 100])
def test_lines_of_anything_else_are_left_out(journal: CorrectionJournal, line: bytes):
    journal.add(PAIRS)
    journal.path.write_bytes(line + b"\n" + journal.path.read_bytes() + line + b"\n")
    assert in_force(journal) == PAIRS
    assert journal.read().damaged == (1, 6)
    assert "1: damaged, and 1 more line; left out" in journal.read().error(journal.path)


def test_a_sound_line_without_its_values_is_left_out(journal: CorrectionJournal):
    facts = CORRECTIONS_FORMAT.stamp({"source": 7, "correction": "x", "time": "now"})
    journal.path.write_text(json.dumps({**facts, CHECKSUM: checksum(facts)}) + "\n", encoding="utf-8")
    assert (in_force(journal), journal.read().damaged) == ([], (1,))


@pytest.mark.parametrize("has_checksum", [False, True])
def test_a_journal_of_a_newer_heedful_is_refused_and_left_as_it_is(journal: CorrectionJournal, has_checksum: bool):
    journal.add(PAIRS)
    facts: dict[str, Any] = {KEY: CORRECTIONS_FORMAT.version + 1, "new": 1}
    facts |= {CHECKSUM: checksum(facts)} if has_checksum else {}
    newer = journal.path.read_bytes() + json.dumps(facts).encode() + b"\n"
    journal.path.write_bytes(newer)
    for call in (journal.read, journal.undo, lambda: journal.add([("a", "b")])):
        with pytest.raises(NewerFormat, match="corrections format 2"):
            call()
    assert journal.path.read_bytes() == newer


def test_the_sample_of_every_version_is_read():
    sample = CorrectionJournal(SAMPLE, normalize)
    assert in_force(sample) == [("Guten Tag", "Good afternoon"), ("你好", "Hello")]
    assert CORRECTIONS_FORMAT.version == 1, "store a sample of the new version beside the old one"


def test_a_full_disk_leaves_the_journal_as_it_was(journal: CorrectionJournal):
    journal.add(PAIRS)
    before = journal.path.read_bytes()
    with disk_quota(len(before) + 20), pytest.raises(ResourceError, match="not written"):
        journal.add([("a", "b")])
    assert journal.path.read_bytes() == before


def test_a_full_journal_says_so(journal: CorrectionJournal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(corrections, "MOST_BYTES", 300)
    journal.add([("a", "b")])
    with pytest.raises(UsageError, match="full"):
        journal.add([("c", "d")])
    assert in_force(journal) == [("a", "b")]


@pytest.mark.skipif(os.name == "nt", reason="no such files there")
def test_what_is_no_file_is_refused(journal: CorrectionJournal):
    os.mkfifo(journal.path)
    for call in (journal.read, lambda: journal.add([("a", "b")])):
        with pytest.raises(DamagedFile):
            call()


# ---------------------------------------------------------------------------------------------------- processes

WRITER = """
import sys
from pathlib import Path
from typing import Any
from heedful.data.corrections import CorrectionJournal
journal = CorrectionJournal(Path(sys.argv[1]), str)
for index in range(int(sys.argv[3])):
    journal.add([(f"{sys.argv[2]} {index}", "x" * (index * 37 % 500 + 1))])
    print(index, flush=True)
"""


def start_writer(path: Path, name: str, number: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, str(path), name, str(number)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(SOURCE)})


def test_processes_that_correct_at_once_lose_nothing(tmp_path: Path):
    path = tmp_path / corrections.NAME
    writers = [start_writer(path, name, 100) for name in "ab"]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    content = CorrectionJournal(path, str).read()
    assert content.damaged == ()
    assert {one.source for one in content.corrections} == {f"{name} {index}" for name in "ab" for index in range(100)}
    for writer in writers:
        writer.communicate()


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL there")
def test_processes_that_are_killed_lose_nothing_that_they_confirmed(tmp_path: Path):
    path = tmp_path / corrections.NAME
    expected: set[str] = set()
    for attempt in range(6):
        writer = start_writer(path, str(attempt), 100_000)
        assert writer.stdout is not None
        confirmed = [writer.stdout.readline() for _ in range(3 + 7 * attempt)]
        writer.send_signal(signal.SIGKILL)
        confirmed += writer.communicate()[0].splitlines()
        expected |= {f"{attempt} {int(line)}" for line in confirmed if line.strip()}
    assert len(expected) >= 100
    assert expected <= {one.source for one in CorrectionJournal(path, str).read().corrections}


def test_a_lock_that_stays_is_told(journal: CorrectionJournal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(append, "_LOCK_SECONDS", 0.02)
    monkeypatch.setattr(append, "lock", lambda descriptor: False)
    with pytest.raises(ResourceError, match="another process"):
        journal.add([("a", "b")])
    assert in_force(journal) == []


def test_an_append_returns_after_file_and_name_are_on_disk(journal: CorrectionJournal, monkeypatch: pytest.MonkeyPatch):
    synced: list[tuple[int, int]] = []

    def note(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced.append((status.st_ino, status.st_size if status.st_ino == journal.path.stat().st_ino else 0))

    monkeypatch.setattr(os, "fsync", note)
    journal.add([("a", "b")])
    file, folder = journal.path.stat(), journal.path.parent.stat()
    assert synced == [(file.st_ino, file.st_size), (folder.st_ino, 0)]


def test_the_stamp_changes_with_the_file(journal: CorrectionJournal, tmp_path: Path):
    stamps = [journal.stamp()]
    for action in (
        lambda: journal.add([("a", "b")]),
        journal.undo,
        lambda: shutil.copy(SAMPLE, tmp_path / corrections.NAME),
        journal.path.unlink,
    ):
        action()
        stamps.append(journal.stamp())
    assert stamps[0] == stamps[-1] == ()
    assert len(set(stamps)) == 4
