"""`heedful translate`: one line in, one line out, whatever is in it."""

import json
import re
import resource
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.command import heedful
from tests.cli.conftest import Trained

LETTERS = st.sampled_from(
    ["a", "b", " ", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\0", "\r", "\t", "é", "日", "\ufeff"]
)
LINES = st.lists(
    st.one_of(st.just(""), st.text(LETTERS, max_size=6), st.text(st.characters(exclude_categories=["Cs"]), max_size=4))
)


def lines_of(text: str) -> list[str]:
    return text.split("\n")[:-1]


@given(lines=LINES, has_last_end=st.booleans())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_as_many_lines_come_out_as_went_in(trained: Trained, lines: list[str], has_last_end: bool):
    # A line in front, because UTF-16 is recognised in the first one, where it would show.
    kept = ["abc", *(line.replace("\n", "") for line in lines)]
    has_last_end = has_last_end or not kept[-1]
    text = "\n".join(kept) + ("\n" if has_last_end else "")
    done = heedful("translate", trained.model, stdin=text.encode())
    assert done.code == 0
    assert not done.errors
    found = lines_of(done.out)
    assert len(found) == len(kept)
    assert all(not output for source, output in zip(kept, found, strict=True) if not source.strip())
    assert "\r" not in done.out


def test_texts_files_and_standard_input_give_the_same(trained: Trained, tmp_path: Path):
    data = tmp_path / "in.txt"
    data.write_bytes(b"\xef\xbb\xbfabc\r\n\r\ncafe\r\n")
    target = tmp_path / "out.txt"
    by_argument = heedful("translate", trained.model, "abc", "", "cafe")
    assert by_argument.code == 0
    assert len(lines_of(by_argument.out)) == 3
    assert heedful("translate", trained.model, stdin=data.read_bytes()) == by_argument
    assert heedful("translate", trained.model, "-i", data) == by_argument
    assert heedful("translate", trained.model, "-i", data, "-o", target) == (0, "", "")
    assert target.read_bytes().decode() == by_argument.out
    assert not (tmp_path / "out.txt.part").exists()


def test_empty_input_gives_empty_output(trained: Trained, tmp_path: Path):
    assert heedful("translate", trained.model, stdin=b"") == (0, "", "")
    empty, target = tmp_path / "empty.txt", tmp_path / "out.txt"
    empty.write_bytes(b"")
    assert heedful("translate", trained.model, "-i", empty, "-o", target) == (0, "", "")
    assert target.read_bytes() == b""


def test_a_terminal_is_prompted_and_answered_line_by_line(trained: Trained):
    done = heedful("translate", trained.model, stdin=b"abc\nfed\n", is_terminal=True)
    assert (done.code, done.err) == (0, "Type a text and press Enter. To leave: Ctrl-D\n> > > \n")
    assert len(lines_of(done.out)) == 2


@pytest.mark.parametrize("batch_tokens", ["1", "30", "4096"])
def test_windows_and_batches_change_nothing(trained: Trained, monkeypatch: pytest.MonkeyPatch, batch_tokens: str):
    text = b"abc\n\nfeed\ncab\nbad\n"
    expected = heedful("translate", trained.model, stdin=text)
    monkeypatch.setattr("heedful.predictors.translator.WINDOW_LINES", 2)
    assert heedful("translate", trained.model, "--batch-tokens", batch_tokens, stdin=text) == expected


def test_jsonl(trained: Trained):
    done = heedful("translate", trained.model, "--format", "jsonl", "--nbest", 2, "--align", "ab cd", "")
    first, second = map(json.loads, lines_of(done.out))
    assert (first["line"], first["source"], first["was_cut"]) == (1, "ab cd", False)
    assert len(first["alternatives"]) == 2
    assert first["alternatives"][0] == {key: first[key] for key in ("text", "log_prob", "score")}
    assert first["alternatives"][0]["score"] >= first["alternatives"][1]["score"]
    assert first["source_pieces"] == ["a", "b", "<unk>", "c", "d", "<eos>"], "no space was trained on"
    assert all(source == 0 for source, _ in first["alignment"])
    assert (second["line"], second["source"], second["text"], second["alignment"]) == (2, "", "", [])


def test_jsonl_has_segments_however_many_there_are(trained: Trained):
    done = heedful("translate", trained.model, "--format", "jsonl", "abc", "abc\nfed", "  fed", "")
    one, two, indented, blank = (json.loads(line)["segments"] for line in lines_of(done.out))
    assert [len(one), len(two), len(indented), blank] == [1, 2, 1, []]
    assert {frozenset(each) for each in (*one, *two, *indented)} == {frozenset(one[0])}
    assert (one[0]["source_range"], one[0]["text_range"]) == ([0, 3], [0, len(one[0]["text"])])


def test_jsonl_has_the_pieces_of_each_segment(trained: Trained):
    done = heedful("translate", trained.model, "--format", "jsonl", "--align", "abc\nfed")
    facts = json.loads(done.out)
    assert facts["source_pieces"] == []
    assert [each["source_pieces"] for each in facts["segments"]] == [["a", "b", "c", "<eos>"], ["f", "e", "d", "<eos>"]]
    assert all(each["target_pieces"] for each in facts["segments"])


def test_nbest_is_in_moses_form_and_begins_with_the_best(trained: Trained):
    best = lines_of(heedful("translate", trained.model, "--beam", 3, "abc", "fed").out)
    done = heedful("translate", trained.model, "--nbest", 3, "abc", "fed")
    fields = [line.split(" ||| ") for line in lines_of(done.out)]
    assert [number for number, *_ in fields] == ["0", "0", "0", "1", "1", "1"]
    assert [fields[0][1], fields[3][1]] == best
    assert all(re.fullmatch(r"log_prob= -\d+\.\d{6}", log_prob) for *_, log_prob, _ in fields)
    scores = [float(score) for *_, score in fields]
    assert scores[:3] == sorted(scores[:3], reverse=True)


def test_align_puts_links_behind_a_tab(trained: Trained):
    plain = lines_of(heedful("translate", trained.model, "ab cd", "").out)
    aligned = lines_of(heedful("translate", trained.model, "--align", "ab cd", "").out)
    assert [line.partition("\t")[0] for line in aligned] == plain
    assert all(re.fullmatch(r"(\d+-\d+( \d+-\d+)*)?", line.partition("\t")[2]) for line in aligned)
    assert aligned[1] == "\t"


def test_what_does_not_go_together(trained: Trained):
    done = heedful("translate", trained.model, "--align", "--nbest", 2, "abc")
    assert (done.code, done.out) == (2, "")
    assert "--format jsonl" in done.err
    done = heedful("translate", trained.model, "-i", trained.data, "abc")
    assert (done.code, done.out) == (2, "")
    assert "not both" in done.err


def test_bytes_that_are_not_utf8_are_replaced_and_told(trained: Trained):
    done = heedful("translate", trained.model, stdin=b"abc\nca\xfffe\nbad\n")
    assert done.code == 0
    assert len(lines_of(done.out)) == 3
    assert lines_of(done.err) == ["heedful: warning: standard input:2: not UTF-8; invalid bytes read as U+FFFD"]


def test_cut_lines_are_told_with_their_numbers(trained: Trained, tmp_path: Path):
    long = tmp_path / "long.txt"
    long.write_bytes(b"abc\n" + b"a" * 1_000_000 + b"\n" + b"ab " * 9 + b"\n" + b"a" * 23 + b"\n")
    done = heedful("translate", trained.model, "-i", long)
    assert done.code == 0
    assert len(lines_of(done.out)) == 4
    cut = [line for line in lines_of(done.err) if "does not know" not in line]
    assert cut == [f"heedful: warning: {long}:{n}: cut after 24 tokens" for n in (2, 3)]
    facts = [
        json.loads(line) for line in lines_of(heedful("translate", trained.model, "-i", long, "--format", "jsonl").out)
    ]
    assert [fact["was_cut"] for fact in facts] == [False, True, True, False]


def test_letters_are_read_in_a_known_form_or_told(trained: Trained):
    lower = heedful("translate", trained.model, stdin=b"abc\n")
    done = heedful("translate", trained.model, stdin="ABC\nábc\n北a b\n".encode())
    assert lines_of(done.out)[:2] == 2 * lines_of(lower.out)
    assert lines_of(done.err) == ["heedful: warning: line 3: the model does not know 北, ' '"]
    facts = [
        json.loads(line) for line in lines_of(heedful("translate", trained.model, "ABC", "北", "--format", "jsonl").out)
    ]
    assert [fact.get("unknown") for fact in facts] == [None, ["北"]]


def test_utf16_is_read_by_its_mark(trained: Trained):
    text = "abc\ndef\n"
    assert heedful("translate", trained.model, stdin=text.encode("utf-16")).out == (
        heedful("translate", trained.model, stdin=text.encode()).out
    )


def test_utf16_without_a_mark_is_refused(trained: Trained):
    done = heedful("translate", trained.model, stdin="abc\ndef\n".encode("utf-16-le"))
    assert done.code == 2
    assert "UTF-16" in done.errors[0]
    assert "iconv" in done.errors[0]


@pytest.mark.parametrize("number", [1, 5])
def test_line_ends_in_outputs_become_spaces(trained: Trained, monkeypatch: pytest.MonkeyPatch, number: int):
    monkeypatch.setattr("heedful.text.tokenizer.UnitTokenizer.decode", lambda self, ids: "x\r\ny\tz")
    texts = ["abc"] * number
    assert heedful("translate", trained.model, *texts).out == "x  y\tz\n" * number
    assert heedful("translate", trained.model, "--align", "abc").out.startswith("x  y z\t")
    assert json.loads(heedful("translate", trained.model, "--format", "jsonl", "abc").out)["text"] == "x\r\ny\tz"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_exit_5(trained: Trained):
    done = heedful("translate", trained.model, "-o", "/dev/full", "abc")
    assert (done.code, done.out) == (5, "")
    assert done.errors == [
        "heedful: error: /dev/full: no space left on device; free some space and run the same command"
    ]


def test_what_was_written_until_the_disk_was_full_keeps_its_other_name(trained: Trained, tmp_path: Path):
    target = tmp_path / "out.txt"
    target.write_bytes(b"before\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))
    try:
        done = heedful("translate", trained.model, "--format", "jsonl", "-o", target, "abc", "fed")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert done.code == 5
    assert len(done.errors) == 1
    assert f"{target}.part: file too large" in done.errors[0]
    assert target.read_bytes() == b"before\n"


def test_a_folder_that_is_not_there(trained: Trained, tmp_path: Path):
    done = heedful("translate", trained.model, "-o", tmp_path / "nowhere" / "out.txt", "abc")
    assert done.code == 2
    assert f"{tmp_path / 'nowhere' / 'out.txt.part'}: no such file or directory" in done.errors[0]
    done = heedful("translate", trained.model, "-i", tmp_path / "nothing.txt")
    assert done.code == 2
    assert f"{tmp_path / 'nothing.txt'}: no such file" in done.errors[0]
