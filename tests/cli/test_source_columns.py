"""Sources of several columns through every command: training, translation, evaluation, corrections, packs, serving."""

import json
from pathlib import Path

import pytest

from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.serving.catalog import open_models
from tests.cli.command import Done, heedful
from tests.serving.reversing import serve

WORDS = [
    "gehen",
    "sehen",
    "stehen",
    "drehen",
    "wehen",
    "flehen",
    "geschehen",
    "nahen",
    "bejahen",
    "muhen",
    "ruhen",
    "tuen",
]
TAGS = {"V;PRS;SG": "t", "V;PST;SG": "te", "V;PST;PL": "ten", "V.PTCP;PST": "d"}
ROWS = [(word, tags, word.removesuffix("en") + ending) for word in WORDS for tags, ending in TAGS.items()]
SMALL = ("embedding_size=8", "hidden_size=8")
QUICK = ("--set=training.max_steps=2", "--set=training.validate_every=2", "--threads=1")


def write(path: Path, order: str = "012", head: str = "") -> Path:
    lines = ["\t".join(row[int(index)] for index in order) + "\n" for row in ROWS]
    path.write_text(head + "".join(lines), encoding="utf-8", newline="\n")
    return path


def train(data: Path, out: Path, *options: str) -> Done:
    sizes = [f"--set=model.{size}" for size in SMALL]
    return heedful("train", data, "--dev", data, "--out", out, "--preset=rnnsearch-tiny", *sizes, *QUICK, *options)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    folder = tmp_path_factory.mktemp("columns")
    return folder / "m", train(write(folder / "deu.trn"), folder / "m")


def test_a_file_of_unimorph_is_recognised(trained: tuple[Path, Done]):
    model, done = trained
    assert done.code == 0, done.err
    assert "columns 1+2 and 3; word and features to a form, as UniMorph writes them" in done.err
    translator = load(model, kind=Translator)
    assert translator.text.source_columns == ["text", "features"]
    assert translator.text.source_units == translator.text.target_units == "characters"
    assert translator.folder.facts["columns"] == ["1+2", 3]
    pieces = translator.source_tokenizer.pieces(translator.source_tokenizer.encode("gehen | V;PST;PL"))
    assert pieces == [*"gehen", "|", "V", "PST", "PL"]


def test_all_ways_to_write_a_source_give_the_same(trained: tuple[Path, Done], tmp_path: Path):
    model, _ = trained
    with_forms, reverse = write(tmp_path / "a.dev"), write(tmp_path / "b.tsv", "01")
    lines, rows = tmp_path / "lines.txt", tmp_path / "rows.jsonl"
    lines.write_text("".join(f"{word} | {tags}\n" for word, tags, _ in ROWS), encoding="utf-8")
    keys = "".join(json.dumps({"form": form, "tags": tags, "word": word}) + "\n" for word, tags, form in ROWS)
    rows.write_text(keys, encoding="utf-8")
    outputs = [heedful("translate", model, "-i", path) for path in (with_forms, reverse, lines)]
    outputs.append(heedful("translate", model, "-i", rows, "--columns", "word+tags"))
    outputs.append(heedful("translate", model, stdin=reverse.read_bytes()))
    assert [(one.code, one.err.count("warning")) for one in outputs] == [(0, 0)] * 5
    assert len({one.out for one in outputs}) == 1
    assert outputs[0].out.count("\n") == len(ROWS)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("gehen",), 2, "line 1: 'gehen' has 1 column; the model reads 2: text | features"),
        (("gehen | V | x",), 2, "has 3 columns"),
        (("gehen | V;DUAL;SG",), 0, "warning: line 1: the model does not know the features DUAL"),
        (("gehen | V;SG", "--columns", "a+b"), 2, "--columns names those of a table"),
    ],
)
def test_bad_sources_are_one_line(trained: tuple[Path, Done], arguments: tuple[str, ...], code: int, words: str):
    done = heedful("translate", trained[0], *arguments)
    assert (done.code, [words in line for line in done.err.split("\n")].count(True)) == (code, 1), done.err
    assert "Traceback" not in done.err


def test_files_are_read_by_the_columns_of_the_training(trained: tuple[Path, Done], tmp_path: Path):
    model, _ = trained
    other = write(tmp_path / "other.tsv", "021")  # the order of older tasks
    joined = tmp_path / "joined.tsv"
    joined.write_text("".join(f"{word} | {tags}\t{form}\n" for word, tags, form in ROWS), encoding="utf-8")
    reports = [heedful("evaluate", model, path, "--format", "json", "--quiet") for path in (other, joined)]
    assert [one.code for one in reports] == [0, 0]
    scores = [{**json.loads(one.out), "data": None} for one in reports]
    for facts in scores:
        facts.pop("seconds", None)
    assert scores[0] == scores[1]
    assert heedful("score", model, other, "--quiet").out == heedful("score", model, joined, "--quiet").out


def test_corrections_packs_and_python(trained: tuple[Path, Done], tmp_path: Path):
    packed = tmp_path / "packed"
    assert heedful("pack", trained[0], "-o", packed).code == 0
    source = "gehen | V;PST;PL"
    assert heedful("correct", packed, source, "gingen").code == 0
    assert heedful("translate", packed, source.replace(" | ", "\t"), "--quiet").out == "gingen\n"
    refused = heedful("correct", packed, "gehen", "ging")
    assert (refused.code, len(refused.errors)) == (2, 1)
    data = tmp_path / "more.tsv"
    data.write_text("".join(f"{word}\t{tags}\t{form}s\n" for word, tags, form in ROWS[:2]), encoding="utf-8")
    assert heedful("correct", packed, "--import", data).code == 0
    assert heedful("translate", packed, f"{ROWS[1][0]} | {ROWS[1][1]}", "--quiet").out == ROWS[1][2] + "s\n"
    assert load(packed, kind=Translator).translate([source])[0].text == "gingen"


def test_a_server_takes_lines_of_columns(trained: tuple[Path, Done]):
    translator = load(trained[0], kind=Translator)
    client = serve(translator)
    pair = {"source": "source", "target": "target"}
    source = "gehen | V;PST;PL"
    answer = client.post("/translate", json={"q": source, **pair})
    assert answer.json() == {"translatedText": translator.translate([source])[0].text}
    for fields in (pair, {**pair, "source": "auto"}):
        answer = client.post("/translate", json={"q": "gehen", **fields})
        assert answer.status_code == 400
        assert "'gehen' has 1 column; the model reads 2: text | features" in answer.json()["error"]
    open_models([trained[0]])  # loads the weights by a translation


def test_named_columns_of_any_kind(tmp_path: Path):
    data = tmp_path / "named.csv"
    lines = [f"{tags.replace(';', '/')},{form},{word}" for word, tags, form in ROWS * 3]
    data.write_text("kind,form,word\n" + "\n".join(lines) + "\n", encoding="utf-8")
    done = train(data, tmp_path / "m", "--columns", "kind+word,form", "--set=training.export=false")
    assert done.code == 0, done.err
    translator = load(tmp_path / "m", kind=Translator)
    assert translator.text.source_columns == ["text", "text"]  # too few rows to tell
    assert translator.folder.facts["columns"] == ["kind+word", 2]
    assert heedful("translate", tmp_path / "m", "-i", data, "--quiet").out.count("\n") == len(ROWS) * 3


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("1+9,2", "3 columns, but 1+9,2 were requested"),
        ("1+1,2", "columns 1+1: expected different columns"),
        ("0+1,2", "expected different columns from 1"),
        ("a+b,2", "no column 'a'"),
        ("1+2", "--columns '1+2'"),
    ],
)
def test_bad_columns_are_one_line(columns: str, words: str, tmp_path: Path):
    done = heedful("train", write(tmp_path / "deu.tsv"), "--out", tmp_path / "m", "--columns", columns)
    assert done.code == 2
    assert words in done.errors[-1]
    assert not (tmp_path / "m").exists()


def test_empty_columns_are_left_out(tmp_path: Path):
    data = tmp_path / "deu.tsv"
    data.write_text(
        "".join(f"{word}\t{tags}\t{form}\n" for word, tags, form in ROWS) + "gehen\t\tging\n", encoding="utf-8"
    )
    done = heedful("check", data)
    assert done.code == 0
    assert "empty" in done.out + done.err
    data.write_text("".join(f"{word}\t\t{form}\n" for word, tags, form in ROWS), encoding="utf-8")
    done = heedful("train", data, "--columns", "1+2,3", "--out", tmp_path / "m")
    assert done.code == 2
    assert "48 empty" in done.errors[-1] or "0 of 48" in done.errors[-1]


def test_features_are_no_text_to_the_data_doctor(tmp_path: Path):
    data = tmp_path / "kat.tsv"
    rows = [
        (word.translate({ord(one): ord("ა") + ord(one) - 97 for one in word}), tags, form) for word, tags, form in ROWS
    ]
    data.write_text("".join("\t".join((word, tags, word + "ა")) + "\n" for word, tags, _ in rows), encoding="utf-8")
    done = heedful("check", data)
    assert "script" not in done.out + done.err
    assert "Georgian and Georgian" in done.out + done.err


def test_what_cannot_have_several_columns_is_refused(trained: tuple[Path, Done], tmp_path: Path):
    data = write(tmp_path / "deu.tsv")
    texts = tmp_path / "forms.txt"
    texts.write_text("ging\n", encoding="utf-8")
    for command, words in (
        (("train", data, "--out", tmp_path / "m", "--monolingual", texts, "--languages", "a:b"), "cannot make several"),
        (("distil", trained[0], data, "--out", tmp_path / "s"), "only models of single texts"),
        (("train", data, "--out", tmp_path / "m", "--set=text.source_columns=['text']"), "text.source_columns: 1 kind"),
    ):
        done = heedful(*command)
        assert (done.code, words in done.err) == (2, True), done.err


def test_pairs_of_a_word_stay_together(tmp_path: Path):
    rows = [(f"{chr(97 + n % 26)}{n}en", tags, f"{n}{end}") for n in range(300) for tags, end in TAGS.items()]
    data = tmp_path / "many.tsv"
    data.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    sizes = [f"--set=model.{size}" for size in SMALL]
    done = heedful(
        "train", data, "--out", tmp_path / "m", "--preset=rnnsearch-tiny", *sizes, *QUICK, "--set=training.export=false"
    )
    assert done.code == 0, done.err
    facts = json.loads((tmp_path / "m" / "run" / "data" / "prepared.json").read_text(encoding="utf-8"))
    held_out = [source.split(" | ")[0] for part in ("dev", "test") for source in facts[part]["sources"]]
    assert len(held_out) == len(TAGS) * len({*held_out}) > 0
