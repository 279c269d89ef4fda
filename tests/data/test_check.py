"""The data doctor finds each planted fault, says where, and agrees with the reader on what training refuses."""

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heedful.data.check import check_corpus
from heedful.data.corpus import find_pairs
from heedful.data.findings import LEVELS, RULES, CheckReport, Finding
from heedful.data.prepare import Sources, prepare
from heedful.errors import DataError, UsageError
from heedful.text.counts import counted
from heedful.text.tokenizer import TextConfig


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def sound_rows(num_rows: int = 1200) -> list[tuple[str, str]]:
    """Cyrillic sources and Latin targets, no two alike."""
    generator = random.Random(5)
    rows: list[tuple[str, str]] = []
    for number in range(num_rows):
        words = [generator.choice(["кот", "спит", "дом", "большой", "идёт", "сегодня"]) for _ in range(9)]
        rows.append((f"{' '.join(words)} {number}", f"{' '.join(word.translate(LATIN) for word in words)} {number}"))
    return rows


LATIN = str.maketrans("абвгдеёжзийклмнопрстуфхцчшщъыьэюя", "abvgdeejziiklmnoprstufhcqwxyyyeua")


def tsv(rows: list[tuple[str, str]]) -> str:
    return "".join(f"{source}\t{target}\n" for source, target in rows)


def found(report: CheckReport) -> dict[str, Finding]:
    by_kind = {finding.kind: finding for finding in report.findings}
    assert len(by_kind) == len(report.findings)
    return by_kind


def test_sound_data_have_nothing_to_say(tmp_path: Path):
    report = check_corpus([write(tmp_path / "a.tsv", tsv(sound_rows()))])
    assert report.findings == ()
    assert report.summary() == "1,200 rows: 0 errors, 0 warnings, 0 notes"
    (facts,) = report.files
    assert (facts.role, facts.num_rows, facts.num_usable) == ("train", 1200, 1200)
    assert facts.scripts == ({"Cyrillic": 1200}, {"Latin": 1200})
    assert facts.mean_characters == pytest.approx((47, 47), abs=8)


Row = tuple[str, str]
# Kind -> level, and what to do to a row; n keeps planted rows apart.
PLANTED: dict[str, tuple[str, Callable[[str, str, int], Row]]] = {
    "empty": ("warning", lambda source, target, n: (" ", target)),
    "too long": ("warning", lambda source, target, n: (source * 60, target)),
    "replacement": ("warning", lambda source, target, n: (source, target + "\ufffd")),
    "mojibake": ("warning", lambda source, target, n: (source, target + " fÃ¼r")),
    "control": ("warning", lambda source, target, n: (source + "\x0b", target)),
    "bidirectional": ("warning", lambda source, target, n: (source + "\u202e", target)),
    "invisible": ("note", lambda source, target, n: (source + "\u200b", target)),
    "private use": ("note", lambda source, target, n: (source + "\ue000", target)),
    "markup": ("warning", lambda source, target, n: (source, target + " &amp;")),
    "decomposed": ("note", lambda source, target, n: (source + "e\u0301", target)),
    "ratio": ("warning", lambda source, target, n: (source, target * 9)),
    "swapped": ("warning", lambda source, target, n: (target, source)),
    "target script": ("warning", lambda source, target, n: (source, source + ".")),
    "source script": ("warning", lambda source, target, n: (target + ".", target)),
    "script": ("note", lambda source, target, n: (f"{'今日学校' * 12} {n}", target)),
    "no letters": ("note", lambda source, target, n: ("=" * 45 + str(n), target)),
    "nul": ("error", lambda source, target, n: (source, target + "\0")),
    "row": ("error", lambda source, target, n: (source, target + "\t")),
}


@pytest.mark.parametrize(
    ("kind", "is_single"),
    [(kind, is_single) for kind in PLANTED for is_single in (True, False) if is_single or kind != "row"],
)
def test_a_planted_fault_is_found_and_nothing_else(tmp_path: Path, kind: str, is_single: bool):
    level, plant = PLANTED[kind]
    rows = sound_rows()
    planted = range(99, 1200, 50)
    for place in planted:
        rows[place] = plant(*rows[place], place)
    paths = [write(tmp_path / "a.tsv", tsv(rows))]
    if not is_single:
        paths = [write(tmp_path / f"a.{side}", "".join(row[side] + "\n" for row in rows)) for side in (0, 1)]
    by_kind = found(check_corpus(paths, max_characters=1500))
    assert list(by_kind) == [kind]
    finding = by_kind[kind]
    assert (finding.level, finding.count) == (level, len(planted))
    assert finding.lines == tuple(place + 1 for place in planted[:5])
    assert finding.where.startswith(f"{paths[0]}:100")
    assert finding.message.startswith(f"{len(planted)} of 1,200 rows {RULES[kind].what}")


def test_japanese_without_kana_is_not_chinese(tmp_path: Path):
    rows = [(f"日本語の文です {n}", f"一个中文的句子 {n}") for n in range(1100)]
    rows[5] = ("日本国憲法 5 番", rows[5][1])
    rows[6] = (rows[6][0], "別の日本語の文です 6")
    by_kind = found(check_corpus([write(tmp_path / "a.tsv", tsv(rows))]))
    assert {kind: finding.lines for kind, finding in by_kind.items()} == {"target script": (7,)}


def test_untranslated_rows(tmp_path: Path):
    rows = sound_rows()
    for place in range(0, 1200, 40):
        rows[place] = (rows[place][0], rows[place][0])
    for place in range(20, 1200, 40):
        rows[place] = (rows[place][1], rows[place][1])
    by_kind = found(check_corpus([write(tmp_path / "a.tsv", tsv(rows))]))
    assert {kind: (finding.level, finding.count) for kind, finding in by_kind.items()} == {
        "identical": ("warning", 60),
        "source script": ("warning", 30),
        "target script": ("warning", 30),
    }


def test_few_of_a_kind_are_only_a_note(tmp_path: Path):
    rows = sound_rows()
    rows[7] = (rows[7][0], "")
    finding = found(check_corpus([write(tmp_path / "a.tsv", tsv(rows))]))["empty"]
    assert (finding.level, finding.count, finding.lines) == ("note", 1, (8,))
    assert str(finding) == (
        f"note: {tmp_path}/a.tsv:8: 1 of 1,200 rows is empty on one or both sides; training leaves them out"
    )


def test_repeated_rows(tmp_path: Path):
    rows = sound_rows()
    rows += [rows[3], rows[3], (rows[4][0].upper(), rows[4][1] + " "), (rows[5][0], "another")]
    by_kind = found(check_corpus([write(tmp_path / "a.tsv", tsv(rows))]))
    assert {kind: finding.lines for kind, finding in by_kind.items() if kind != "ratio"} == {
        "duplicate": (1201, 1202),
        "near duplicate": (1203,),
        "ambiguous": (1204,),
    }
    many = found(check_corpus([write(tmp_path / "b.tsv", tsv(rows[:1000] * 2))]))
    assert (many["duplicate"].level, many["duplicate"].count) == ("warning", 1000)
    assert str(many["duplicate"]).endswith(
        "(lines 1001, 1002, 1003, 1004, 1005, ...); training counts them as often as they occur"
    )


def test_words_that_repeat_or_stay_as_they_are_are_usual(tmp_path: Path):
    rows = [("og", "og"), ("Effter", "Efter")] * 300 + [(f"ord{n}", f"ord{n}") for n in range(300)]
    report = check_corpus([write(tmp_path / "words.tsv", tsv(rows))])
    levels = {finding.kind: finding.level for finding in report.findings}
    assert (levels["repeated"], levels["unchanged"]) == ("note", "note")


def test_leaks_between_roles(tmp_path: Path):
    rows = sound_rows(1400)
    train = write(tmp_path / "train.tsv", tsv(rows[:1200]))
    dev_rows = rows[1200:1300]
    dev_rows[10] = rows[0]
    dev_rows[11] = (rows[1][0].upper(), rows[1][1])
    dev_rows[12] = (rows[2][0], rows[2][1][::-1])
    dev_rows[13] = (rows[3][0] + " ", rows[3][1][::-1])
    dev = write(tmp_path / "dev.tsv", tsv(dev_rows))
    test = write(tmp_path / "test.tsv", tsv([*rows[1300:], rows[1250]]))
    report = check_corpus([train], [dev], [test])
    leaks = {(finding.kind, finding.where, finding.count) for finding in report.findings}
    assert leaks == {
        ("leaked pair", f"{dev}:11", 1),
        ("leaked near pair", f"{dev}:12", 1),
        ("leaked source", f"{dev}:13", 1),
        ("leaked near source", f"{dev}:14", 1),
        ("leaked pair", f"{test}:101", 1),
    }
    assert "in the dev data too" in str(next(one for one in report.findings if one.where == f"{test}:101"))
    assert [facts.role for facts in report.files] == ["train", "dev", "test"]
    assert report.summary() == "1,401 rows: 0 errors, 4 warnings, 1 note"


def test_everything_wrong_is_found_at_once(tmp_path: Path):
    rows = tsv(sound_rows()).encode().split(b"\n")[:-1]
    rows[10] = b"one column"
    rows[20] = b"f\xfcr\tfor"
    rows[30] = b"a\0\tb"
    rows[40] = b"\t"
    data = b"\xef\xbb\xbfsource\ttarget\r\n" + b"\n".join(rows)
    report = check_corpus([write(tmp_path / "a.tsv", data)])
    by_kind = found(report)
    assert {kind: (finding.level, finding.where.removeprefix(str(tmp_path))) for kind, finding in by_kind.items()} == {
        "row": ("warning", "/a.tsv:12"),
        "encoding": ("warning", "/a.tsv:22:2"),
        "nul": ("warning", "/a.tsv:32"),
        "byte order mark": ("note", "/a.tsv:1"),
        "line ends": ("note", "/a.tsv"),
        "headings": ("note", "/a.tsv:1"),
        "empty": ("note", "/a.tsv:42"),
        "source script": ("note", "/a.tsv:32"),
    }
    assert "the first: 1 column, the lines before have 2" in by_kind["row"].message
    assert "byte 0xFC is not UTF-8, though the rest is" in by_kind["encoding"].message
    assert by_kind["line ends"].message == "1 of 1,201 lines end in CR LF, the others in LF"
    levels = [finding.level for finding in report.findings]
    assert levels == sorted(levels, key=LEVELS.index)
    assert (report.files[0].num_rows, report.files[0].num_usable) == (1200, 1197)


def test_csv_as_python_writes_it_goes_without_saying(tmp_path: Path):
    rows = "".join(f'a text {n},"another\nof {n}"\r\n' for n in range(60))
    assert "line ends" not in found(check_corpus([write(tmp_path / "a.csv", rows)]))
    assert "line ends" not in found(check_corpus([write(tmp_path / "a.csv", rows.replace("\nof", " of"))]))
    message = found(check_corpus([write(tmp_path / "a.csv", f"{rows}a,b\n")]))["line ends"].message
    assert message == "60 of 121 lines end in CR LF, the others in LF"
    tabs = rows.replace("\nof", " of").replace(",", "\t")
    assert "line ends" in found(check_corpus([write(tmp_path / "a.tsv", tabs)]))


def test_summaries_are_of_any_length(tmp_path: Path):
    rows = [(source * (60 if n % 40 else 1), target) for n, (source, target) in enumerate(sound_rows())]
    path = write(tmp_path / "a.tsv", tsv(rows))
    by_kind = found(check_corpus([path], max_characters=100_000))
    assert by_kind["ratio"].count == 30
    by_kind = found(check_corpus([path], [path], max_characters=100_000, are_summaries=True))
    assert by_kind["summaries"].level == "note"
    assert "ratio" not in by_kind


def test_a_report_is_json(tmp_path: Path):
    report = check_corpus([write(tmp_path / "a.tsv", "a\tb\n")])
    data = json.loads(json.dumps(report.to_json()))
    assert data["summary"] == "1 row: 1 error, 0 warnings, 0 notes"
    assert data["findings"][0]["kind"] == "few rows"
    assert data["files"][0]["scripts"] == [{"Latin": 1}, {"Latin": 1}]


@pytest.mark.parametrize(
    ("num_rows", "level"), [(0, "error"), (1, "error"), (9, "error"), (10, "warning"), (999, "warning"), (1000, "")]
)
def test_few_rows(tmp_path: Path, num_rows: int, level: str):
    rows = sound_rows(num_rows) or [("a", "")]
    by_kind = found(check_corpus([write(tmp_path / "a.tsv", tsv(rows))]))
    assert (by_kind["few rows"].level if "few rows" in by_kind else "") == level
    different = "different " if 0 < num_rows < 10 else ""
    if level:
        assert by_kind["few rows"].message.startswith(f"{counted(num_rows, f'{different}row')} to learn from")


CORPORA: dict[str, list[tuple[str, str]]] = {
    "nine": sound_rows(9),
    "ten": sound_rows(10),
    "one row 500 times": sound_rows(1) * 500,
    "nine rows 60 times": sound_rows(9) * 60,
    "ten rows 60 times": sound_rows(10) * 60,
    **{f"source {i} with 150 targets": [(f"source {i}", f"target {k}") for k in range(150)] for i in range(12)},
    "two sources with 150 targets": [(f"source {k % 2}", f"target {k}") for k in range(150)],
    "99 targets": [("source", f"target {k}") for k in range(99)],
    "200": sound_rows(200),
}


@pytest.mark.parametrize("has_dev", [False, True])
@pytest.mark.parametrize("corpus", CORPORA)
def test_what_training_refuses_is_an_error(corpus: str, has_dev: bool, tmp_path: Path):
    train = write(tmp_path / "a.tsv", tsv(CORPORA[corpus]))
    dev = [write(tmp_path / "dev.tsv", tsv([("source dev", "target dev")]))] if has_dev else []
    errors = [finding for finding in check_corpus([train], dev).findings if finding.level == "error"]
    sources = Sources(find_pairs([train]), find_pairs(dev) if dev else None)
    text = TextConfig(source_units="characters", target_units="characters")
    refusal = ""
    try:
        prepare(sources, text, tmp_path / "m")
    except DataError as error:
        refusal = str(error)
    assert bool(errors) == bool(refusal), (errors, refusal)
    if errors and errors[0].kind == "few sources":
        assert refusal.endswith(errors[0].message)
        assert not has_dev


def test_few_rows_to_measure_on_are_a_note(tmp_path: Path):
    rows = sound_rows(1210)
    dev = write(tmp_path / "dev.tsv", tsv(rows[1200:]))
    (finding,) = check_corpus([write(tmp_path / "a.tsv", tsv(rows[:1200]))], dev=[dev]).findings
    assert (finding.level, finding.message, finding.where) == ("note", "10 rows to choose by", str(dev))


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (b"", "file", "f: empty"),
        (b"PK\x03\x04", "file", "f: a zip archive"),
        ("ja\tyes\n".encode("utf-16-le"), "reading", "f:1:1: the file is UTF-16LE"),
        (b"one column\n", "columns", "f:1: 1 column, but 1,2 were requested"),
        (gzip.compress(b"a\tb\n" * 9, mtime=0)[:-4], "file", "f: damaged gzip data"),
        (b"\n\n", "few rows", "f: 0 rows to learn from"),
    ],
)
def test_files_that_cannot_be_read_are_findings(tmp_path: Path, content: bytes, kind: str, message: str):
    report = check_corpus([write(tmp_path / "f", content)])
    errors = [finding for finding in report.findings if finding.level == "error"]
    assert [finding.kind for finding in errors] == [kind]
    assert str(errors[0]).startswith(f"error: {tmp_path}/{message}")


def test_every_bad_file_is_named(tmp_path: Path):
    report = check_corpus([tmp_path / "a.de", tmp_path / "a.en"], dev=[tmp_path / "dev.tsv"])
    assert [finding.where for finding in report.findings] == [
        str(tmp_path / name) for name in ("a.de", "a.en", "dev.tsv")
    ]


def test_two_files_of_pairs_are_an_error(tmp_path: Path):
    first, second = write(tmp_path / "a.tsv", "a\tb\n"), write(tmp_path / "b.tsv", "c\td\n")
    (finding,) = check_corpus([first, second]).findings
    assert (finding.level, finding.where) == ("error", str(first))
    assert finding.message.startswith("holds both sides of its pairs; give it alone")


def test_unequal_files(tmp_path: Path):
    rows = sound_rows()
    source = write(tmp_path / "a.ru", "".join(source + "\n" for source, _ in rows))
    target = write(tmp_path / "a.en", "".join(target + "\n" for _, target in rows[:-3]))
    for columns in ((1, 2), (2, 1)):
        (finding,) = check_corpus([source, target], columns=columns).findings
        assert (finding.level, finding.kind) == ("error", "counts")
        assert finding.message.startswith(
            f"{source} has 1200 lines, {target} has 1197; they seem to agree until {target}"
        )


def test_columns_that_cannot_be_are_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"columns 1,3: expected 1,2 or 2,1"):
        check_corpus([tmp_path / "a", tmp_path / "b"], columns=(1, 3))


FRAGMENTS = st.sampled_from(
    [
        *(b"a\tb", b"\xd0\xb0\tb", b"a\tb\r", b"a\t" + b"b" * 30, b"", b"\t", b" ", b"\xef\xbb\xbf"),
        *(b"source\ttarget", b"a", b"\xff\tb", b"a\0\tb", b"\t\0", b"\xff\xfea\0", b"{}"),
        *(b'{"source": "a", "target": "b"}', b'{"source": "a\\u0000", "target": "b"}'),
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(FRAGMENTS, max_size=5), st.lists(FRAGMENTS, max_size=5), st.booleans())
def test_errors_are_exactly_what_the_reader_refuses(
    tmp_path: Path, first: list[bytes], second: list[bytes], is_single: bool
):
    sides = [write(tmp_path / str(side), b"\n".join(lines)) for side, lines in enumerate((first, second))]
    paths = sides[:1] if is_single else sides
    report = check_corpus(paths, max_characters=20)
    has_errors = any(finding.level == "error" and finding.kind != "few rows" for finding in report.findings)
    try:
        pairs = list(find_pairs(paths))
    except DataError:
        # Files of nothing but blank lines or headings have no rows to learn from, which says it too.
        assert report.count("error") > 0
    else:
        assert not has_errors
        (facts,) = report.files
        assert facts.num_rows == len(pairs)
        usable = [
            pair for pair in pairs if pair.source.strip() and pair.target.strip() and len(max(pair[:2], key=len)) <= 20
        ]
        assert facts.num_usable == len(usable)


def test_labels_are_noted_and_not_compared_with_their_texts(tmp_path: Path):
    words = "a b c d e f g h i j k l m n o p q r s t".split()
    texts = [f"{first} {second} {third}" for first in words for second in words for third in words[:3]]
    data = [(text, "好" if index % 2 else "not good at all, indeed it is very bad") for index, text in enumerate(texts)]
    (finding,) = check_corpus([write(tmp_path / "a.tsv", tsv(data))]).findings
    assert (finding.level, finding.kind) == ("note", "labels")
    assert finding.message == "targets are 2 labels"
    assert "--task classification" in finding.advice
