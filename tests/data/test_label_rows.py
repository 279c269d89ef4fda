"""Texts with labels as people have them: headings, columns and formats; and no row of data is taken for headings."""

import csv
import io
import json
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from heedful.data.folders import folder_parts
from heedful.data.labelled import find_labelled
from heedful.data.rows import Columns, RequestedColumns
from heedful.data.task_check import check_task
from heedful.errors import DataError
from heedful.runs.request import TrainRequest
from heedful.text.label_sets import joined_labels, split_labels
from tests.thorough import thorough

PAIRS = (
    "text,label label,text v1,v2 Category,Message message,category text,stars 内容,类别 review,sentiment "
    "sentence,label Label,SMS text,category tweet,sentiment comment,label headline,category title,topic "
    "question,type query,intent utterance,intent text,intent Review,Rating review_text,rating text,airline_sentiment "
    "text,target content,sentiment Text,Emotion article,genre document,class x,y body,tag description,category "
    "news,label text,class description,genre post,subreddit_label abstract,topic summary,score text,polarity "
    "input,output text,language email,is_spam text,toxic feedback,score statement,status_label title,department "
    "文本,标签 评论,情感 标题,分类 句子,标签 问题,类型 新闻,类别 正文,主题 评价,评分 内容,标签 短信,类别 评论,星级 "
    "微博,情绪 文本,意图 留言,类别 邮件,类型 utt,domain snippet,verdict"
).split()
TEXTS = [f"the {word} room was {n} times as good, see you" for n, word in enumerate(("red", "blue", "old") * 20)]
LABELS = [("good", "bad", "3")[n % 3] for n in range(60)]


def write(path: Path, rows: list[tuple[str, ...]], separator: str) -> Path:
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, lineterminator="\n").writerows(rows)
    path.write_text(stream.getvalue(), "utf-8")
    return path


def read(path: Path, columns: Columns = (1, 2)) -> list[tuple[str, str]]:
    return [(pair.source, pair.target) for pair in find_labelled([path], columns)]


def test_sixty_pairs_of_headings_are_recognised_with_any_separator(tmp_path: Path):
    assert len({*PAIRS}) >= 60
    firsts = ("label", "v1", "Category", "Label")
    for index, pair in enumerate(PAIRS):
        first, second = pair.split(",")
        rows = [*zip(TEXTS, LABELS, strict=True)]
        written = [(label, text) for text, label in rows] if first in firsts else rows
        for separator, suffix in ((",", "csv"), ("\t", "tsv"), (";", "csv")):
            path = write(tmp_path / f"{index}.{suffix}", [(first, second), *written], separator)
            assert read(path) == rows, (pair, separator)


CORPORA = {
    "classification/trec.train.tsv": (1, 2),
    "classification/sst2.train.tsv": (1, 2),
    "classification/sst5.train.tsv": (1, 2),
    "classification/mr.train.tsv": (1, 2),
    "classification/banking77.train.csv": (1, 2),
    "classification/sms.train.tsv": (2, 1),
    "chn_hotel/train.tsv": (3, 1),
}


def no_heading_is_invented(folder: Path, number: int) -> None:
    root = Path(__file__).parents[2] / "../shared/data"
    root = root if root.is_dir() else Path(os.environ.get("HEEDFUL_SHARED", "/nowhere"))
    if not root.is_dir():
        pytest.skip("the corpora of ../shared/data are not here")
    drawn = random.Random(49)
    for name, columns in CORPORA.items():
        separator = "," if name.endswith(".csv") else "\t"
        quotes = csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE
        with (root / name).open(encoding="utf-8", newline="") as stream:
            rows = [tuple(row) for row in csv.reader(stream, delimiter=separator, quoting=quotes)][1:]
        for _ in range(number // len(CORPORA) + 1):
            size = drawn.choice((1, 2, 5, 20, 21, 50, 300))
            start = drawn.randrange(len(rows) - size)
            path, cut = folder / f"cut{Path(name).suffix}", rows[start : start + size]
            if separator == ",":
                write(path, cut, separator)
            else:
                path.write_text("".join("\t".join(row) + "\n" for row in cut), "utf-8")
            for chosen in ((1, 2), columns):
                pairs = [*find_labelled([path], chosen)]
                assert len(pairs) == size, (name, start, size, rows[start])


def test_no_row_of_data_is_taken_for_headings(tmp_path: Path):
    no_heading_is_invented(tmp_path, 60)


@thorough
def test_no_row_of_two_thousand_corpora_is_taken_for_headings(tmp_path: Path):
    no_heading_is_invented(tmp_path, 2_000)


def test_columns_are_found_by_name_and_by_content(tmp_path: Path):
    rows = [
        (str(n), "2026-01-01", text, "short title", label)
        for n, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    wanted = [*zip(TEXTS, LABELS, strict=True)]
    named = write(tmp_path / "named.csv", [("id", "date", "body", "title", "label"), *rows], ",")
    assert read(named) == wanted
    joined = read(named, columns=("title+body", "label"))
    assert joined == [(f"short title | {text}", label) for text, label in wanted]
    assert read(named, columns=("Title+BODY", "Label")) == joined
    assert read(named, columns=("4+3", 5)) == joined
    assert read(write(tmp_path / "plain.tsv", [(label, "", n, text) for n, _, text, _, label in rows], "\t")) == wanted
    messy = [("v1", "v2", "", "", ""), *((label, text, "", "", "") for text, label in wanted)]
    assert read(write(tmp_path / "spam.csv", messy, ",")) == wanted
    for columns, message in ((("body", "lable"), "no column 'lable'; did you mean 'label'"), ((3, 9), "column 9")):
        with pytest.raises(DataError, match=message):
            find_labelled([named], columns)


def test_formats_of_other_libraries(tmp_path: Path):
    wanted = [("good room", "pos"), ("bad room", "neg"), ("fine", "pos")]

    def jsonl(name: str, rows: Sequence[object]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        return path

    def document(name: str, value: object, indent: int | None = None) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(value, indent=indent), "utf-8")
        return path

    objects = [{"text": text, "label": label} for text, label in wanted]
    cats = [
        {"text": text, "cats": {"pos": float(label == "pos"), "neg": float(label == "neg")}} for text, label in wanted
    ]
    columns = {"text": [text for text, _ in wanted], "label": [label for _, label in wanted]}
    fasttext = tmp_path / "fasttext.txt"
    fasttext.write_text("".join(f"__label__{label} {text}\n" for text, label in wanted), "utf-8")
    paths = [
        fasttext,
        document("array.json", objects),
        document("indented.json", objects, 2),
        document("data.json", {"data": objects}, 2),
        document("pairs.json", [*map(list, wanted)]),
        document("spacy.json", [[text, {"cats": cats[n]["cats"]}] for n, (text, _) in enumerate(wanted)]),
        document("pandas.json", {name: dict(enumerate(values)) for name, values in columns.items()}),
        document("split.json", {"columns": ["text", "label"], "index": [0, 1, 2], "data": [*map(list, wanted)]}),
        jsonl("cats.jsonl", cats),
        jsonl("lists.jsonl", [{"text": text, "labels": [label]} for text, label in wanted]),
        jsonl(
            "numbers.jsonl", [{"idx": n, "sentence": text, "label": label} for n, (text, label) in enumerate(wanted)]
        ),
    ]
    for path in paths:
        assert read(path) == wanted, path.name
        assert not find_labelled([path]).has_label_sets
    assert read(jsonl("stars.jsonl", [{"text": "a", "stars": 4.0}, {"text": "b", "stars": None}])) == [
        ("a", "4"),
        ("b", ""),
    ]
    for label in ("pos", "neg"):
        for number, (text, own) in enumerate(wanted):
            if own == label:
                (tmp_path / "folders" / label).mkdir(parents=True, exist_ok=True)
                (tmp_path / "folders" / label / f"{number}.txt").write_text(text, "utf-8")
    assert sorted(read(tmp_path / "folders")) == sorted(wanted)
    (tmp_path / "bad.json").write_text('[{"text"]', "utf-8")
    with pytest.raises(DataError, match=r"bad.json:1:9: not JSON"):
        find_labelled([tmp_path / "bad.json"])
    with pytest.raises(DataError, match="JSON without rows"):
        find_labelled([document("none.json", {"a": {"b": 1}}, 2)])


def test_the_comma_behind_a_label_of_fasttext_is_no_text(tmp_path: Path):
    path = tmp_path / "train.txt"
    path.write_text("__label__1 , good , very\n__label__2 ,\n, x __label__1\n__label__1 fine ,\n", "utf-8")
    assert [text for text, _ in read(path)] == ["good , very", "", ", x", "fine ,"]


def test_several_labels_as_people_write_them(tmp_path: Path):
    wanted = [("one", ("a", "b")), ("two", ()), ("three", ("b",)), ("four", ("a",))]
    one_hot = [
        ("id", "comment_text", "a", "b"),
        *((str(n), text, str(int("a" in own)), str(int("b" in own))) for n, (text, own) in enumerate(wanted)),
    ]
    marked = [("text", "tags"), *((text, "|".join(own)) for text, own in wanted)]
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(json.dumps({"text": text, "labels": own}) + "\n" for text, own in wanted), "utf-8")
    cats = tmp_path / "cats.jsonl"
    scored = ({"text": text, "cats": {name: 0.9 if name in own else 0.1 for name in "ab"}} for text, own in wanted)
    cats.write_text("".join(json.dumps(row) + "\n" for row in scored), "utf-8")
    fasttext = tmp_path / "fasttext.txt"
    fasttext.write_text(
        "".join(f"{' '.join(f'__label__{one}' for one in own)} {text}\n" for text, own in wanted if own), "utf-8"
    )
    files = [
        find_labelled([write(tmp_path / "hot.csv", one_hot, ",")]),
        find_labelled([write(tmp_path / "hot2.csv", one_hot, ",")], ("comment_text", "a+b")),
        find_labelled([write(tmp_path / "marked.csv", marked, ",")], separator="|"),
        find_labelled([lists]),
        find_labelled([cats]),
        find_labelled([fasttext]),
    ]
    for file in files:
        assert file.has_label_sets
        rows = [(pair.source, split_labels(pair.target)) for pair in file]
        assert rows == [row for row in wanted if row[1] or file is not files[-1]], file.describe()
    assert joined_labels(["b", "a", "b"]) == joined_labels(["a", "b"])


def test_a_heading_that_stands_twice_is_a_heading(tmp_path: Path):
    rows = [*zip(TEXTS, LABELS, LABELS, strict=True)]
    path = write(tmp_path / "twice.csv", [("text", "label", "label"), *rows], ",")
    assert read(path) == [row[:2] for row in rows]
    repeated = write(tmp_path / "words.csv", [("fine", "good", "good"), *rows], ",")
    assert len(read(repeated)) == len(rows) + 1


def test_missing_cells_are_left_out_and_labels_in_two_columns_are_told(tmp_path: Path):
    rows = [(text, "NaN" if n % 9 == 4 else label) for n, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))]
    file = find_labelled([write(tmp_path / "a.csv", [("text", "label"), ("nan", "good"), *rows], ",")])
    assert {pair.target for pair in file} == {*LABELS, ""}
    assert next(iter(file)).source == ""
    objects = [{"text": float("nan") if n % 9 == 0 else text, "label": label} for n, (text, label) in enumerate(rows)]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in objects), "utf-8")
    assert [pair.source for pair in find_labelled([tmp_path / "a.jsonl"])][:2] == ["", TEXTS[1]]
    two = [("text", "label", "category"), *[(*row, "x") for row in zip(TEXTS, LABELS, strict=True)]]
    file = find_labelled([write(tmp_path / "two.csv", two, ",")])
    assert "label in column 2 (label); not read: column 3 (category), unless --columns names it" in file.describe()
    objects = [
        {"title": "a", "note": "", "id": n, "body": text, "label": label} for n, (text, label) in enumerate(rows)
    ]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in objects), "utf-8")
    told = "text in key 4 (body), label in key 5 (label); not read: keys 1 (title), 3 (id), unless --columns names them"
    assert told in find_labelled([tmp_path / "a.jsonl"]).describe()
    assert "not read" not in find_labelled([tmp_path / "a.jsonl"], ("body", "label")).describe()


def test_texts_without_labels_are_refused(tmp_path: Path):
    (tmp_path / "one.json").write_text('{"text": "t"}')
    with pytest.raises(DataError, match=r"one\.json:1: no labels: 'text' is all there is; each row needs a text and a"):
        find_labelled([tmp_path / "one.json"])
    blank = write(tmp_path / "blank.csv", [("text", "label"), *((text, "") for text in TEXTS)], ",")
    with pytest.raises(DataError, match=r"blank\.csv:1: no labels: nothing but 'text' has values"):
        find_labelled([blank])
    blank = write(tmp_path / "blank.csv", [("text", "label"), *(("", label) for label in LABELS)], ",")
    with pytest.raises(DataError, match=r"blank\.csv:1: no texts: nothing but 'label' has values"):
        find_labelled([blank])


def test_numbers_of_columns_are_no_labels_of_the_first_row(tmp_path: Path):
    rows = [(text, str(1 + n % 2)) for n, text in enumerate(TEXTS)]
    data = write(tmp_path / "a.tsv", rows, "\t")
    assert read(data, RequestedColumns((1, 2))) == rows
    assert read(data, (2, 1)) == [row[::-1] for row in rows]


@pytest.mark.parametrize("form", ["{:.2f}", "-{:.1f}", "${:.2f}", "{:,.1f}", "£{:,.2f}", "{:.3f} €", "{:d}"])
def test_headings_of_measured_numbers_are_known_however_they_are_written(tmp_path: Path, form: str):
    rows = [(text, form.format(1200 + n if "d" in form else 1200.5 + n)) for n, text in enumerate(TEXTS)]
    assert read(write(tmp_path / "a.csv", [("text", "price"), *rows], ",")) == rows
    assert read(write(tmp_path / "b.csv", rows, ",")) == rows


@pytest.mark.parametrize("names", ["loc num", "id loc", "key no index", "year score title", "loc row topic"])
def test_columns_of_zeros_and_ones_are_labels_whatever_their_names(tmp_path: Path, names: str):
    labels = ["desc", "human", *names.split()]
    rows = [
        (str(n), text, *(str(int(i == n % len(labels))) for i in range(len(labels)))) for n, text in enumerate(TEXTS)
    ]
    path = write(tmp_path / "a.csv", [("line", "text", *labels), *rows], ",")
    assert read(path) == [(text, labels[n % len(labels)]) for n, text in enumerate(TEXTS)]


def test_a_grade_of_zero_and_one_is_read_without_other_columns_of_zeros_and_ones(tmp_path: Path):
    rows = [(text, str(n % 2), str(n % 3 // 2), str(n % 5 // 4)) for n, text in enumerate(TEXTS)]
    path = write(tmp_path / "a.csv", [("text", "label", "is_long", "has_link"), *rows], ",")
    assert read(path) == [row[:2] for row in rows]


RARE = [f"kind {n}" if n % 3 else ("good", "bad", "toxic")[n // 3 % 3] for n in range(60)]


def test_a_name_with_an_underscore_stands_out_from_short_texts(tmp_path: Path):
    rows = [("too loud", "ok"), ("fine", "toxic"), ("so so", "ok"), ("no way", "ok")]
    assert read(write(tmp_path / "a.csv", [("comment_text", "toxic"), *rows], ",")) == rows
    code = [("a_b", "x"), ("c_d", "y"), ("e f", "x"), ("g h", "z")]
    assert read(write(tmp_path / "b.csv", code, ",")) == code


def test_a_word_with_a_capital_or_of_another_script_is_no_heading(tmp_path: Path):
    rows = [*zip(TEXTS, [f"a {label} one" for label in LABELS], strict=True)][:4]
    for first in (("Hallo", "Hello"), ("你好", "hello")):
        assert read(write(tmp_path / "a.csv", [first, *rows], ",")) == [first, *rows]


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        *(("comment_text,toxic", labels) for labels in (LABELS, RARE, ["toxic", "ok"] * 30, ["toxic", "ok"] * 2)),
        *(("text,origin", RARE[:count]) for count in (4, 60)),
        ("doc,verdict", [*LABELS[:58], "rare", "rarer"]),
        ("doc,verdict", [f"{n} km" for n in range(60)]),
        ("doc,day", [f"2026-01-{n + 10}" for n in range(12)]),
    ],
)
def test_headings_of_unknown_names_stand_out_from_the_rows(names: str, labels: list[str], tmp_path: Path):
    rows = [*zip(TEXTS, labels, strict=False)]
    first, second = names.split(",")
    assert read(write(tmp_path / "a.csv", [(first, second), *rows], ",")) == rows
    assert read(write(tmp_path / "b.csv", rows, ",")) == rows
    if labels[:58] == LABELS[:58] and len(rows) > 20:
        swapped = [(label, text) for text, label in rows]
        assert read(write(tmp_path / "c.tsv", [(second, first), *swapped], "\t")) == rows


def test_folders_of_parts_and_of_labels(tmp_path: Path):
    root = tmp_path / "corpus"
    for part in ("train", "valid", "test"):
        for label in ("pos", "neg", "unsup") if part == "train" else ("pos", "neg"):
            (root / part / label).mkdir(parents=True)
            (root / part / label / "1.txt").write_text(f"{part} {label}", "utf-8")
        (root / part / "urls_pos.txt").write_text("http://example.org", "utf-8")
    assert folder_parts(root) == {"train": root / "train", "dev": root / "valid", "test": root / "test"}
    assert folder_parts(root / "train") == {}
    assert read(root / "train") == [("train neg", "neg"), ("train pos", "pos")]
    request = TrainRequest(data=(root,), test=(root / "other",))
    assert request.parts == {"train": (root / "train",), "dev": (root / "valid",), "test": (root / "other",)}
    assert request.out == Path("corpus.model")
    findings = check_task("classification", [root / "train"]).findings
    assert any("1 text in the folder unsup left out" in each.message for each in findings)
    with pytest.raises(DataError, match=r"a folder of several parts; give one, such as .*test"):
        find_labelled([root])
