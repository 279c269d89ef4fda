"""Pairs from TSV, JSONL and aligned files: all of them, in order, or a line that says what is wrong."""

import csv
import gzip
import io
import json
import unicodedata
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from heedful.data.cells import is_quoted_tsv
from heedful.data.corpus import Pair, find_pairs, group_references
from heedful.data.labelled import find_labelled
from heedful.data.split_positions import split_of
from heedful.errors import DataError, UsageError

TEXTS = st.text(st.one_of(st.sampled_from("\r\x0b\x0c\x85\u2028 \"'"), st.characters(exclude_categories=["Cs"])))
CELLS = TEXTS.map(lambda text: text.translate(dict.fromkeys(map(ord, "\0\n\t{}"))).rstrip("\r").lstrip("\ufeff"))
ROWS = st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=8)
HERE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(path: Path, content: bytes | str, packed: bool = False) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    return path


def texts(paths: list[Path], columns: tuple[int, int] = (1, 2)) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in find_pairs(paths, columns)]


def refusal(paths: list[Path], columns: tuple[int, int] = (1, 2)) -> str:
    with pytest.raises(DataError) as caught:
        list(find_pairs(paths, columns))
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------- reading
@HERE
@given(ROWS, st.booleans())
def test_all_formats_give_the_same_pairs(tmp_path: Path, rows: list[tuple[str, str]], packed: bool):
    rows = [("first row", "erste Zeile"), *rows]
    expected = [Pair(source, target, line) for line, (source, target) in enumerate(rows, start=1)]
    sides = [write(tmp_path / f"a.{side}", "".join(row[side] + "\n" for row in rows), packed) for side in (0, 1)]
    tab = write(tmp_path / "a.tsv", "".join(f"{source}\t{target}\n" for source, target in rows), packed)
    text = "".join(json.dumps({"source": source, "target": target}) + "\n" for source, target in rows)
    lines = write(tmp_path / "a.jsonl", text, packed)
    assume(not is_quoted_tsv(["first row\terste Zeile", *(f"{source}\t{target}" for source, target in rows)]))
    quoted = io.StringIO()
    csv.writer(quoted, lineterminator="\n").writerows(rows)
    commas = write(tmp_path / "a.csv", quoted.getvalue(), packed)
    for paths in (sides, [tab], [lines], [commas]):
        pairs = find_pairs(paths)
        assert list(pairs) == expected
        assert list(pairs) == expected  # each reading starts anew
        assert [(pair.target, pair.source) for pair in find_pairs(paths, (2, 1))] == [row[:2] for row in rows]


def test_line_ends_and_byte_order_marks_change_nothing_but_the_notes(tmp_path: Path):
    rows = b"a\tb\nc\td"
    plain = find_pairs([write(tmp_path / "plain.tsv", rows)])
    marked = find_pairs([write(tmp_path / "marked.tsv", b"\xef\xbb\xbf" + rows.replace(b"\n", b"\r\n"))])
    assert list(plain) == list(marked) == list(marked) == [Pair("a", "b", 1), Pair("c", "d", 2)]
    assert plain.notes == []
    assert marked.notes == [
        f"{tmp_path}/marked.tsv:1: byte order mark left out",
        f"{tmp_path}/marked.tsv: 1 of 2 lines end in CR LF",
    ]


def test_notes_of_both_files(tmp_path: Path):
    pairs = find_pairs([write(tmp_path / "a.de", b"\xef\xbb\xbfx\n"), write(tmp_path / "a.en", b"y\r\n")])
    assert list(pairs) == [Pair("x", "y", 1)]
    assert [note.removeprefix(str(tmp_path)) for note in pairs.notes] == [
        "/a.de:1: byte order mark left out",
        "/a.en: 1 of 1 lines end in CR LF",
    ]


def test_headings_are_left_out_and_lines_keep_their_numbers(tmp_path: Path):
    one = find_pairs([write(tmp_path / "a.tsv", "id\tEnglish\tGerman\n7\tdog\tHund\n")], (2, 3))
    two = find_pairs([write(tmp_path / "b.en", "source\nx\n"), write(tmp_path / "b.de", "target\ny\n")])
    assert list(one) == [Pair("dog", "Hund", 2)]
    assert list(two) == [Pair("x", "y", 2)]
    assert one.notes == [f"{tmp_path}/a.tsv:1: headings left out"]
    assert two.notes == [f"{tmp_path}/b.en:1: headings left out"]
    assert texts([write(tmp_path / "c.jsonl", '{"a": "en", "b": "de"}\n')]) == [("en", "de")]


def test_a_row_that_comes_again_is_no_heading(tmp_path: Path):
    rows = [
        ("de", "da"),
        ("konj", "konj"),
        ("de", "da"),
    ]  # a word of Slovene, as it was spelled, and codes of languages
    path = write(tmp_path / "words.tsv", "".join(f"{one}\t{other}\n" for one, other in rows))
    assert texts([path]) == rows
    path = write(tmp_path / "words.tsv", "".join(f"{one}\t{other}\n" for one, other in rows[:2]))
    assert texts([path]) == rows[1:2]


def test_empty_lines_are_empty_pairs(tmp_path: Path):
    pairs = find_pairs([write(tmp_path / "a.tsv", "\na\tb\tc\n\n\nd\t\te\n")], (1, 3))
    assert [tuple(pair)[:3] for pair in pairs] == [("", "", 1), ("a", "c", 2), ("", "", 3), ("", "", 4), ("d", "e", 5)]


def test_jsonl_is_known_by_content(tmp_path: Path):
    row = '{"de": "ja", "en": "yes"}\n'
    assert texts([write(tmp_path / "a.txt", row)]) == [("ja", "yes")]
    assert texts([write(tmp_path / "b.tsv", "{ja\tyes}\n")]) == [("{ja", "yes}")]


def test_reading_is_lazy(tmp_path: Path):
    path = write(tmp_path / "a.tsv", b"a\tb\n" * 100_000 + b"broken\n")
    pairs = find_pairs([path])
    assert len(list(islice(pairs, 100_000))) == 100_000
    assert refusal([path]).startswith(f"{path}:100001: 1 column, the lines before have 2")


def test_the_name_and_the_fingerprint(tmp_path: Path):
    path = write(tmp_path / "pairs.tsv.gz", "a\tb\nc\td", packed=True)
    pairs = find_pairs([path])
    assert pairs.name == "pairs"
    found = pairs.fingerprint()
    assert (found["columns"], found["files"][0]["name"], found["files"][0]["lines"]) == ([1, 2], "pairs.tsv.gz", 2)
    assert found["files"][0]["size"] == path.stat().st_size
    assert json.loads(json.dumps(found)) == found
    assert find_pairs([path], (2, 1)).fingerprint() != found


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.txt"])
def test_thousands_of_empty_lines_before_the_first_row_are_skipped(tmp_path: Path, name: str):
    path = write(tmp_path / name, "\n" * 5000 + ("a,b\n" if name == "a.csv" else "a\tb\n"))
    for find in (find_pairs, find_labelled):
        assert [tuple(pair[:2]) for pair in find([path]) if pair.source] == [("a", "b")]


# ------------------------------------------------------------------------------------------------------ refusals
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\nc\n", "f:2: 1 column, the lines before have 2"),
        ("a\tb\nc\td\te\n", "f:2: 3 columns, the lines before have 2"),
        ("a\tb\n \n", "f:2: 1 column"),
        ("a, b\n", "f:1: 1 column, but 1,2 were requested; columns are separated by a tab, not by ','"),
        ("\n\n\n", "f: nothing but empty lines"),
        ("source\ttarget\n", "f: nothing but headings"),
        (b"ja\tyes\nf\xfcr\tfor\n", "f:2:2: byte 0xFC is not UTF-8; the file looks like ISO-8859-1; convert it: iconv"),
        (
            "我们\t是\n".encode("gb18030"),
            "f:1:1: byte 0xCE is not UTF-8; the file looks like GB18030; convert it: iconv -f GB",
        ),
        ("ja\tyes\n".encode("utf-16-le"), "f:1:1: the file is UTF-16LE, not UTF-8; convert it: iconv -f UTF-16LE"),
        (b"words here\tmore\na\tb\0c\n", "f:2:4: NUL character; remove it"),
        (b"PK\x03\x04" + b"\0" * 30, "f: a zip archive"),
        (b"", "f: empty"),
        ('{"source": "a", "target": "b"}\n{"source": "a"}\n', "f:2: no key 'target'"),
        ('{"source": "a", "target": "b"}\nsource\ttarget\n', "f:2:1: not JSON: "),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: bytes | str, message: str):
    path = write(tmp_path / "f", content)
    assert refusal([path]).startswith(f"{tmp_path}/{message}")


def test_a_missing_file_is_refused_at_once(tmp_path: Path):
    write(tmp_path / "pairs.tsv", "a\tb\n")
    with pytest.raises(DataError, match=r"pair\.tsv: no such file; did you mean .*pairs\.tsv"):
        find_pairs([tmp_path / "pair.tsv"])


@pytest.mark.parametrize(("columns", "num_files"), [((1, 1), 1), ((0, 1), 1), ((1, 3), 2), ((1, 2), 0), ((1, 2), 3)])
def test_impossible_requests_are_refused(tmp_path: Path, columns: tuple[int, int], num_files: int):
    paths = [write(tmp_path / f"{number}", "a\tb\tc\n") for number in range(num_files)]
    with pytest.raises(UsageError, match=r"^columns \d,\d: expected|^expected one file of pairs, or two aligned"):
        find_pairs(paths, columns)


def sentences(numbers: list[int], word: str) -> str:
    return "".join(f"{word * (number * 7 % 23 + 1)} {number}\n" for number in numbers)


@pytest.mark.parametrize(("lost", "place"), [(range(500, 501), 501), (range(300, 1300), 301), (range(1), 1)])
@pytest.mark.parametrize("is_source_short", [True, False])
def test_files_of_different_lengths_are_refused(tmp_path: Path, lost: range, place: int, is_source_short: bool):
    numbers = list(range(2000))
    kept = [number for number in numbers if number not in lost]
    source = write(tmp_path / "a.de", sentences(kept if is_source_short else numbers, "wort"))
    target = write(tmp_path / "a.en", sentences(numbers if is_source_short else kept, "words"), packed=True)
    counts = (len(kept), 2000) if is_source_short else (2000, len(kept))
    said = refusal([source, target])
    assert said.startswith(
        f"{source} has {counts[0]} lines, {target} has {counts[1]}; they seem to drift apart at about"
    )
    line = int(said.partition("about line ")[2].partition(";")[0])
    assert abs(line - place) <= 2
    assert "drift apart" in refusal([source, target], (2, 1))


@pytest.mark.parametrize("cut", [1, 1000])
def test_a_file_that_ends_early_is_named(tmp_path: Path, cut: int):
    source = write(tmp_path / "a.de", sentences(list(range(2000)), "wort"))
    target = write(tmp_path / "a.en", sentences(list(range(2000 - cut)), "words"))
    assert refusal([source, target]).endswith(f"they seem to agree until {target} ends: complete it, or cut {source}")


def test_every_row_before_the_drift_was_given(tmp_path: Path):
    source, target = write(tmp_path / "a.de", "a\nb\nc\n"), write(tmp_path / "a.en", "x\ny\n")
    pairs = iter(find_pairs([source, target]))
    assert [next(pairs).line, next(pairs).line] == [1, 2]
    with pytest.raises(DataError, match=r"a\.de has 3 lines, .*a\.en has 2"):
        next(pairs)


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl"])
def test_two_files_of_pairs_are_refused(tmp_path: Path, name: str):
    path = write(tmp_path / name, "a\tb\n" if name == "a.tsv" else '{"source": "a", "target": "b"}\n')
    other = write(tmp_path / "b.txt", "x\n")
    assert refusal([path, other]) == f"{path}: holds both sides of its pairs; give it alone, not with {other}"
    assert refusal([other, path]) == f"{path}: holds both sides of its pairs; give it alone, not with {other}"


def test_either_side_may_be_json_or_hold_tabs(tmp_path: Path):
    code, text = write(tmp_path / "a.code", "{}\nx\t=\t1\n"), write(tmp_path / "a.text", "nothing\nassign\n")
    assert texts([code, text]) == [("{}", "nothing"), ("x\t=\t1", "assign")]


# --------------------------------------------------------------------------------------------------------- splits
def test_splits_are_the_same_in_every_version():
    sources = ["", "a", "Guten Tag", "你好", "Wie geht es dir?", "the quick brown fox"]
    assert [split_of(source, 0.3, 0.3) for source in sources] == GOLDEN_SPLITS


GOLDEN_SPLITS = ["dev", "train", "dev", "test", "train", "dev"]


@given(st.text(), st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 1))
def test_larger_shares_keep_what_smaller_ones_held_out(source: str, dev: float, test: float, part: float):
    held_out = split_of(source, dev * part, test * part)
    assert held_out in ("train", split_of(source, dev, test))
    assert split_of(unicodedata.normalize("NFD", source), dev, test) == split_of(source, dev, test)


def test_shares_are_what_they_say():
    counts = Counter(split_of(f"sentence {number}", 0.1, 0.2) for number in range(5000))
    assert counts["dev"] == pytest.approx(500, abs=80)
    assert counts["test"] == pytest.approx(1000, abs=110)
    assert split_of("a", 1.0, 0.0) == "dev"
    assert split_of("a", 0.0, 1.0) == "test"
    assert split_of("a", 0.0, 0.0) == "train"


@pytest.mark.parametrize("shares", [(-0.1, 0.0), (0.0, 1.1), (0.6, 0.6), (float("nan"), 0.0)])
def test_impossible_shares_are_refused(shares: tuple[float, float]):
    with pytest.raises(UsageError, match=r"^shares "):
        split_of("a", *shares)


# ---------------------------------------------------------------------------------------------------------- filter
def pairs_of(rows: list[tuple[str, str]]) -> list[Pair]:
    return [Pair(source, target, line) for line, (source, target) in enumerate(rows, start=1)]


def test_references_are_grouped_in_order():
    rows = [("b", "y"), ("a", "x"), ("b", "z"), ("b", "y"), ("B", "y")]
    assert group_references(iter(pairs_of(rows))) == [("b", ["y", "z"]), ("a", ["x"]), ("B", ["y"])]


@pytest.mark.parametrize(
    ("content", "pairs", "said"),
    [
        (
            "1276\tLet's try.\t2\t我們試試看！\n1277\tSleep.\t5\t去睡觉。\n",
            [("Let's try.", "我們試試看！"), ("Sleep.", "去睡觉。")],
            "columns 2 and 4; columns 1 and 3 hold numbers; first pair: \"Let's try.\" -> '我們試試看！'",
        ),
        ("id\tsource\ttarget\n1\ta\tb\n2\tc\td\n", [("a", "b"), ("c", "d")], "columns 2 (source) and 3 (target)"),
        ('"Hi"\t"Salut"\n"Bye ""you"""\t"Ciao"\n', [("Hi", "Salut"), ('Bye "you"', "Ciao")], "quoted as by Excel"),
        ('{"id": "7", "de": "ja", "en": "yes"}\n', [("ja", "yes")], "keys 'de' and 'en'"),
    ],
)
def test_identifiers_and_quotes_are_left_out_and_said(
    tmp_path: Path, content: str, pairs: list[tuple[str, str]], said: str
):
    path = tmp_path / "a.tsv"
    path.write_text(content, encoding="utf-8")
    found = find_pairs([path])
    assert [(pair.source, pair.target) for pair in found] == pairs
    assert said in found.describe()


def test_named_columns_may_be_identifiers(tmp_path: Path):
    path = tmp_path / "a.tsv"
    path.write_text("id\tsource\ttarget\n1\ta\tb\n", encoding="utf-8")
    assert [(pair.source, pair.target) for pair in find_pairs([path], ("id", "source"))] == [("1", "a")]


def test_one_of_two_aligned_files_asks_for_the_other(tmp_path: Path):
    for name in ("train.de", "train.en", "other.fr"):
        (tmp_path / name).write_text("ein Satz\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"for two aligned files, give both, such as \S*train\.de \S*train\.en$"):
        find_pairs([tmp_path / "train.de"])
    with pytest.raises(DataError, match=r"for two aligned files, give both$"):
        find_pairs([tmp_path / "other.fr"])


def test_line_breaks_in_quoted_cells_are_read_as_spaces(tmp_path: Path):
    rows = [("text", "label"), ("one\ntwo", 'a "b"\nc'), ('5" disk', "d"), ("\n", "e"), ("last, line", "f\n\ng")]
    for name, delimiter in (("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t")):
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n", delimiter=delimiter).writerows(rows)
        path = write(tmp_path / name, stream.getvalue())
        found = find_pairs([path])
        assert [(pair.source, pair.target) for pair in found] == [
            tuple(cell.replace("\n", " ") for cell in row) for row in rows[1:]
        ]
        assert [pair.line for pair in found] == [2, 5, 6, 8]  # the first line of each row in the file
    # A quote that is never closed is a fault of its own row, and takes no other rows with it.
    lines = [f"text {number},label" for number in range(200)]
    lines[60] = '"open,label'
    path = write(tmp_path / "b.csv", "\n".join(lines))
    assert "b.csv:61: a quoted cell is not closed" in refusal([path])
    assert len([*find_pairs([path], leaves_out_faults=True)]) == 199


def test_a_small_share_of_unreadable_rows_is_left_out_and_told_once(tmp_path: Path):
    def file(number: int, every: int, form: str) -> Path:
        bad = {"tsv": b"one column", "encoding": b"f\xfcr\tfor", "nul": b"a\0\tb", "jsonl": b'{"source": '}[form]
        good = b'{"source": "a%d", "target": "b"}' if form == "jsonl" else b"a%d\tb"
        rows = [bad if row % every == every - 1 else good % row for row in range(number)]
        return write(tmp_path / f"a.{form}", b"\n".join(rows))

    for form in ("tsv", "encoding", "nul", "jsonl"):
        path = file(1000, 100, form)  # 1 %
        assert f"{path}:100" in refusal([path])
        found = find_pairs([path], leaves_out_faults=True)
        assert len([*found]) == 990
        (note,) = {*found.notes}
        assert (
            f"{path}: 10 of 1,000 rows left out as unreadable: lines 100, 200, 300, 400, 500, ...; the first: " in note
        )
        assert len([*found]) == 990
        assert found.notes == [note]
        for number, every in ((1000, 90), (19, 10)):
            too_many = find_pairs([file(number, every, form)], leaves_out_faults=True)
            with pytest.raises(DataError, match=f"{path.name}:{every}"):
                list(too_many)
    sides = [
        write(tmp_path / f"b.{side}", b"\n".join([b"x"] * 30 + bad))
        for side, bad in (("de", [b"\xff"]), ("en", [b"y"]))
    ]
    found = find_pairs(sides, leaves_out_faults=True)
    assert len([*found]) == 30
    assert "1 of 31 rows left out" in found.notes[0]
