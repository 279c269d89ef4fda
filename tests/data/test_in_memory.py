"""Examples in memory: the file that is made of them, and what is refused."""

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.data.corpus import find_pairs
from heedful.data.in_memory import SIDES, column_of, example_files, in_rows, with_column
from heedful.data.labelled import find_labelled
from heedful.data.tables import data_lines
from heedful.errors import DataError, UsageError

OWN = Path(tempfile.gettempdir(), "dev.tsv")
"""File of the caller's own, which stands where files of examples in memory are made."""
ROWS = [{"text": "good", "label": "a"}, {"text": "bäd\n\t", "label": "b"}]
COLUMNS = {"text": ["good", "bäd\n\t"], "label": ["a", "b"]}


NESTED: list[Any] = []
NESTED.append(NESTED)


class Frame:
    """Stand-in for a table of pandas."""

    columns = ("text", "label")

    def to_dict(self, orient: str) -> list[dict[str, str]]:
        assert orient == "records"
        return ROWS


class Polars:
    """Stand-in for a table of polars."""

    def to_dicts(self) -> list[dict[str, str]]:
        return ROWS


class Arrow:
    """Stand-in for a table of PyArrow."""

    def to_pylist(self) -> list[dict[str, str]]:
        return ROWS


def written(data: Any, columns: Any = (1, 2)) -> tuple[list[Any], Any]:
    with example_files(data, "train", columns) as files:
        (path,) = files.paths
        rows = [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
    assert not path.exists()
    return rows, files.columns


def test_every_form_gives_the_same_rows():
    for data in (ROWS, iter(ROWS), COLUMNS, Frame(), Polars(), Arrow(), [ROWS], [Frame()], (COLUMNS,)):
        assert written(data, ("text", "label")) == (ROWS, ("text", "label"))
    pairs = [("good", "a"), ["bäd\n\t", "b"]]
    for data in (pairs, [pairs]):
        rows, columns = written(data)
        assert [tuple(row.values()) for row in rows] == [tuple(pair) for pair in pairs]
        assert columns == ("source", "target")
    assert written(pairs, (2, 1))[1] == ("target", "source")
    assert written(pairs, ("target", "source"))[1] == ("target", "source")
    assert written([("one", "pair")])[0] == [{"source": "one", "target": "pair"}]
    assert written([("one", ["a", "b"])])[0] == [{"source": "one", "target": ["a", "b"]}]
    assert written([{"text": "one", "label": ["a", "b"]}])[0] == [{"text": "one", "label": ["a", "b"]}]


class Series:
    """Stand-in for a column of polars."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def to_list(self) -> list[Any]:
        return self.values


def test_sources_and_targets_are_pairs_and_so_are_the_rows_of_an_array():
    sources, targets = ["one", "two", "three"], ["eins", "zwei", "drei"]
    wanted = [{"source": one, "target": other} for one, other in zip(sources, targets, strict=True)]
    for data in (
        (sources, targets),
        ((sources, targets),),
        [sources, tuple(targets)],
        (np.array(sources), targets),
        (Series(sources), Series(targets)),
        np.array([sources, targets]).T,
        np.array([sources, targets], dtype=object).T,
    ):
        assert written(data) == (wanted, ("source", "target"))
    assert written((np.array(sources[:2]), np.array(targets[:2])))[0] == wanted[:2]
    assert written((sources[:2], targets[:2]))[0] == wanted[:2]
    assert written(((sources[:2], targets[:2]),))[0] == wanted[:2]
    # Within a list, two lists of two values are two pairs, and so are two rows of an array.
    assert written([sources[:2], targets[:2]])[0][0] == {"source": "one", "target": "two"}
    assert written([*np.array([sources[:2], targets[:2]])])[0][0] == {"source": "one", "target": "two"}
    assert written((sources, [["a"], ["b", "c"], ["d"]]))[0][1] == {"source": "two", "target": ["b", "c"]}
    assert written(([("a", "b")] * 2,))[0] == [{"source": "a", "target": "b"}] * 2


def test_messages_name_the_sides_of_the_task():
    for data, message in (
        ([("a", "b"), ("c", None)], "row 1, 'label' is None"),
        ([("a",)], r"give a pair \(text, label\)"),
        ((["a"] * 4, ["b"] * 3), "4 values of text, but 3 of label; give one for each"),
        (np.array([["a", "b"], ["c", None]]), "row 1, 'label' is None"),
    ):
        with pytest.raises(DataError, match=message), example_files(data, "train", sides=SIDES["classification"]):
            pass


def test_numbers_and_lists_are_values():
    row = {"text": "x", "n": np.int64(3), "f": np.float32(0.5), "labels": np.array(["a", "b"]), "is": np.bool_(True)}
    assert written([row, row])[0][0] == {"text": "x", "n": 3, "f": 0.5, "labels": ["a", "b"], "is": True}


def test_rows_are_what_they_are_in_any_order_and_with_any_text():
    assert written([{"text": "x", "label": "a"}, {"label": "b", "text": "y"}])[0] == [
        {"text": "x", "label": "a"},
        {"text": "y", "label": "b"},
    ]
    assert written([{1: "x", "label": "a"}])[0] == written({1: ["x"], "label": ["a"]})[0] == [{"1": "x", "label": "a"}]
    hostile = "\ud800 \udfff\0\x1b[2J\u2028\n\r</script>\ufeff"
    assert written([(hostile, "y")])[0] == [{"source": hostile, "target": "y"}]


def test_paths_stay_paths():
    for data in ("a.tsv", Path("a.tsv"), ["a.tsv"], ("a.tsv", Path("b")), (), []):
        with example_files(data, "train") as files:
            assert {path.name for path in files.paths} <= {"a.tsv", "b"}
    with example_files(("a", "b"), "train", (2, 1)) as files:
        assert files == ((Path("a"), Path("b")), (2, 1))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[]], "train: no examples"),
        (5, "train: expected paths, or examples in memory"),
        ([("a",), ("b",)], "row 0 is a tuple of 1; give a pair"),
        ([("a", "b"), "c"], "paths, not both"),
        ([("a", "b"), b"c"], "row 1 is a bytes"),
        ([("a", "b"), ("c", None)], "row 1, 'target' is None; give a value, or leave the row out"),
        ({"a": ["x", "y"], "b": [1.0, float("nan")]}, "row 1, 'b' is nan"),
        ({"a": ["x"], "b": ["y", "z"]}, "columns differ in length: a 1, b 2"),
        ({"source": "abc", "target": "xyz"}, "column 'source' is a str; give a list of values"),
        ({"source": 5, "target": ["x"]}, "column 'source' is a int; give a list of values"),
        ({"a": ["x"], "b": {"c": "d"}}, "column 'b' is a dict; give a list of values"),
        ([("a", 10**5000)], "row 0, 'target' is a number of 16610 bits"),
        ([("a", NESTED), ("b", NESTED)], "row 0, 'target' is a list"),
        ([{"a": "x", "b": "y"}, {"a": "x"}], "row 1 has the keys 'a', row 0 has 'a', 'b'"),
        ([{"a": "x", "b": object()}, {"a": "x", "b": "y"}], "row 0, 'b' is a object"),
    ],
)
def test_what_is_no_example_is_refused_with_its_row(data: Any, message: str):
    with pytest.raises(DataError, match="train: ") as refused, example_files(data, "train"):
        pass
    assert message in str(refused.value)
    assert "unfinished" not in str(refused.value)


def test_errors_of_readers_name_rows_of_the_data():
    messages = {
        "{path}: bad": "train: bad",
        "{path}:2: 2 are bad (lines 2, 13)": "train: row 1: 2 are bad (rows 1, 12)",
        "{path}: 2 rows left out as unreadable: lines 1,001, 2,000, ...; the first: {path}:1001: bad": (
            "train: 2 rows left out as unreadable: rows 1,000, 1,999, ...; the first: train: row 1000: bad"
        ),
        "{path}: 'see line 1' -> \"don't (line 2)\" (line 3)": "train: 'see line 1' -> \"don't (line 2)\" (row 2)",
        "{path}:2: unknown: line 3, see line 4": "train: row 1: unknown: line 3, see line 4",
        f"{{path}}:2: as in {OWN} (line 4); {OWN}:5": f"train: row 1: as in {OWN} (line 4); {OWN}:5",
    }
    for message, expected in messages.items():
        with pytest.raises(DataError) as refused, example_files(ROWS, "train") as files:
            raise DataError(message.format(path=files.paths[0]))
        assert str(refused.value) == expected
    assert in_rows("train.jsonl:2: bad (line 2)") == "train.jsonl:2: bad (line 2)"  # a file of the caller's own


def test_columns_of_pairs_are_numbers_or_names_of_their_sides():
    pairs = [("good", "a"), ("bad", "b"), ("good", "c")]
    sides = ("text", "label")
    for columns in ((1, 2), ("source", "target"), sides):
        with example_files(pairs, "train", columns, sides) as files:
            assert files.columns == ("source", "target")
    with example_files(pairs, "train", ("label", "text"), sides) as files:
        assert files.columns == ("target", "source")
    refused = r"^train: pairs have the columns 1 and 2, or 'source' and 'target'; not 'de' and 'en'$"
    with pytest.raises(DataError, match=refused), example_files(pairs, "train", ("de", "en")):
        pass


def test_training_and_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pairs = [(f"wort{number} x", f"word{number} y") for number in range(40)]
    settings = {"training.max_steps": 2, "training.export": False}
    options: dict[str, Any] = {"out": tmp_path / "m", "preset": "tiny", "settings": settings}
    model = heedful.train(pairs, dev=pairs[:10], test=pairs[:5], **options)
    said = capsys.readouterr().out
    assert "train: keys 'source' and 'target'; first pair: 'wort0 x' -> 'word0 y'" in said
    assert ".jsonl" not in said
    assert "unfinished" not in said
    assert "--" not in said
    assert "unfinished" not in (tmp_path / "m/run/history.jsonl").read_text("utf-8")
    report = model.evaluate(pairs[:3])
    assert report.num_items == 3
    assert "exact match" in report._repr_html_()
    assert str(model.folder.path) in model._repr_html_()
    rows = model.annotate([{"de": "wort1 x"}], "de", to="en")
    assert rows == [{"de": "wort1 x", "en": model.predict(["wort1 x"])[0]}]
    finished = model.folder.path.joinpath("run/history.jsonl").read_bytes()
    steps: list[int] = []
    more: dict[str, Any] = {**options, "settings": {**settings, "training.max_steps": 3}}
    threads = torch.get_num_threads()
    heedful.train(pairs, dev=pairs[:10], test=pairs[:5], threads=1, watch=lambda one: steps.append(one.step), **more)
    assert steps[-1] == 3
    assert torch.get_num_threads() == threads
    assert len(model.folder.path.joinpath("run/history.jsonl").read_bytes()) >= len(finished)
    with pytest.raises(
        UsageError, match=r"changed\); choose another out, or delete the folder"
    ):  # the same folder with other examples
        heedful.train(pairs[1:], dev=pairs[:10], test=pairs[:5], **options)
    with pytest.raises(UsageError, match="give all data as pairs"):
        heedful.train(pairs, dev=tmp_path / "dev.tsv", **options)


def test_a_column_is_added_to_every_kind_of_table():
    texts, lengths = COLUMNS["text"], [4, 5]
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    tables = {
        "pandas": (pandas.DataFrame(COLUMNS, index=[7, 9]), lambda table: table.to_dict("list")),
        "polars": (polars.DataFrame(COLUMNS), lambda table: table.to_dict(as_series=False)),
        "arrow": (arrow.table(COLUMNS), lambda table: table.to_pydict()),
        "columns": (COLUMNS, dict),
        "rows": (ROWS, lambda rows: {key: [row[key] for row in rows] for key in rows[0]}),
    }
    for kind, (table, columns) in tables.items():
        assert column_of(table, "text") == column_of(table, "Text") == texts, kind
        added = with_column(table, "length", lengths)
        assert type(added) is type(table), kind
        assert columns(added) == {**COLUMNS, "length": lengths}, kind
        assert columns(table) == COLUMNS, kind
        with pytest.raises(DataError, match="has a column 'label'"):
            with_column(table, "label", lengths)
        with pytest.raises(DataError, match="row 0 has no column 'txt'"):
            column_of(table, "txt")
    with pytest.raises(DataError, match="row 1, 'text' is a NoneType"):
        column_of({"text": ["a", None]}, "text")


class Splits(dict[str, Any]):
    """Stand-in for a DatasetDict of datasets: splits by name."""


class Dataset:
    """Stand-in for a Dataset of datasets: rows as dictionaries, and the names of its columns."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.column_names = list(rows[0])

    def __iter__(self) -> Any:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


TRANSLATIONS = [
    {"id": "0", "translation": {"de": "Guten Tag", "en": "Good day"}},
    {"id": "1", "translation": {"de": "Danke", "en": "Thanks"}},
]


@pytest.mark.parametrize(
    ("columns", "pairs"),
    [
        ((1, 2), [("Guten Tag", "Good day"), ("Danke", "Thanks")]),
        ((2, 1), [("Good day", "Guten Tag"), ("Thanks", "Danke")]),
        (("translation.de", "translation.en"), [("Guten Tag", "Good day"), ("Danke", "Thanks")]),
        (("translation.en", "translation.de"), [("Good day", "Guten Tag"), ("Thanks", "Danke")]),
        (("en", "de"), [("Good day", "Guten Tag"), ("Thanks", "Danke")]),
    ],
)
@pytest.mark.parametrize("make", [list, Dataset])
def test_rows_of_translations_are_read(make: Any, columns: Any, pairs: list[tuple[str, str]]):
    with example_files((make(TRANSLATIONS),), "train", columns) as files:
        assert [(pair.source, pair.target) for pair in find_pairs(files.paths, files.columns)] == pairs


def test_a_single_row_and_the_code_of_indonesian():
    rows = [{"translation": {"en": "Good day", "id": "Selamat siang"}}]
    with example_files(rows, "dev") as files:
        assert [(pair.source, pair.target) for pair in find_pairs(files.paths, files.columns)] == [
            ("Good day", "Selamat siang")
        ]


def test_translations_into_several_languages_ask_for_a_choice():
    rows = [{"translation": {"de": "Tag", "en": "day", "fr": "jour"}}]
    said = re.escape(
        "train: 'translation' has 'de', 'en', 'fr'; choose two: columns=('translation.de', 'translation.en')"
    )
    with pytest.raises(DataError, match=f"^{said}$"), example_files((rows,), "train"):
        pass
    with example_files((rows,), "train", ("translation.fr", "translation.de")) as files:
        assert [(pair.source, pair.target) for pair in find_pairs(files.paths, files.columns)] == [("jour", "Tag")]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"translation": {"de": None, "en": "day"}}, "train: row 1, 'translation.de' is None"),
        ({"translation": {"de": "Tag"}}, "train: row 1, 'translation' has 'de'; row 0 has 'de', 'en'"),
        ({"translation": "Tag"}, "train: row 1, 'translation' is a str; give a dictionary, as in row 0"),
    ],
)
def test_faulty_translations_are_refused(row: dict[str, Any], said: str):
    rows = [{"translation": {"de": "Tag", "en": "day"}}, row]
    with pytest.raises(DataError, match=re.escape(said)), example_files((rows,), "train"):
        pass


def test_a_dictionary_of_splits_names_them():
    splits = Splits(train=Dataset(TRANSLATIONS), validation=Dataset(TRANSLATIONS), test=Dataset(TRANSLATIONS))
    said = re.escape(
        "train: a dictionary of the tables 'train', 'validation', 'test'; give one, such as data['train'], and others "
        "as dev and test"
    )
    with pytest.raises(DataError, match=f"^{said}$"), example_files((splits,), "train"):
        pass
    with pytest.raises(DataError, match=f"^{said}$"):
        heedful.train(splits)


def test_dictionaries_are_values_such_as_the_answers_of_squad():
    rows = [{"question": "Who?", "context": "Ada sang .", "answers": {"text": ["Ada"], "answer_start": np.array([0])}}]
    plain = {**rows[0], "answers": {"text": ["Ada"], "answer_start": [0]}}
    assert written([rows])[0] == [plain]
    faulty = [{**rows[0], "answers": {"text": [None]}}]
    with pytest.raises(DataError, match=r"^train: row 0, 'answers', 'text' is None"), example_files((faulty,), "train"):
        pass


def test_numbers_of_classes_become_their_names():
    table: Any = Dataset([{"text": "a", "label": 1}, {"text": "b", "label": 0}, {"text": "c", "label": -1}])
    table.features = {"text": {"_type": "Value"}, "label": {"names": ["neg", "pos"], "_type": "ClassLabel"}}
    with example_files(table, "train") as files:
        assert [pair[:2] for pair in find_labelled(files.paths)] == [("a", "pos"), ("b", "neg"), ("c", "")]


def test_tables_of_the_library_datasets_are_rows(tmp_path: Path):
    datasets: Any = pytest.importorskip("datasets")
    labelled = datasets.Dataset.from_dict({"text": ["good", "bad"], "label": [1, 0]})
    rows = [{"text": "good", "label": 1}, {"text": "bad", "label": 0}]
    for table in (labelled, labelled.to_iterable_dataset(), labelled.with_format("numpy")):
        assert written(table, ("text", "label"))[0] == rows
    added = with_column(labelled, "length", [4, 3])
    assert (type(added), added["length"][:]) == (type(labelled), [4, 3])
    assert column_of(labelled, "text") == ["good", "bad"]
    translations = datasets.Dataset.from_dict({"translation": [{"de": "Tag", "en": "day"}]})
    assert written(translations)[0] == [{"translation": {"de": "Tag", "en": "day"}}]
    answers = datasets.Dataset.from_dict({"answers": [{"text": ["Ada"], "answer_start": [0]}]})
    assert written(answers)[0] == [{"answers": {"text": ["Ada"], "answer_start": [0]}}]
    parts = datasets.DatasetDict(train=labelled, test=labelled)
    with pytest.raises(DataError, match="a dictionary of the tables 'train', 'test'"), example_files((parts,), "train"):
        pass
    answers.save_to_disk(tmp_path / "saved")
    lines = [*data_lines(tmp_path / "saved")]
    assert [json.loads(line) for line in lines if line] == [{"answers": {"text": ["Ada"], "answer_start": [0]}}]
