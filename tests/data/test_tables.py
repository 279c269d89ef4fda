"""Tables in Parquet and Arrow are the same pairs as JSONL, and are refused by name where they are damaged."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from heedful.data.check import check_corpus
from heedful.data.corpus import find_pairs
from heedful.data.labelled import find_labelled
from heedful.data.tables import check_data_file, data_lines, is_table
from heedful.errors import DataError, MissingExtra, install_command
from heedful.text.label_sets import split_labels

ROWS = [{"id": number, "de": f'Wort {number}\t"ä"\u2028', "en": f"word {number}"} for number in range(2500)]


@pytest.fixture
def pyarrow() -> Any:
    return pytest.importorskip("pyarrow")


def write(path: Path, rows: list[dict[str, Any]], pyarrow: Any) -> Path:
    """A file of each kind that Hugging Face's datasets writes: to_parquet, save_to_disk, and Arrow's own."""
    from pyarrow import ipc, parquet

    table = pyarrow.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=700)
        return path
    kind = ipc.new_stream if path.name.startswith("stream") else ipc.new_file
    with path.open("wb") as file, kind(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=700)
    return path


@pytest.mark.parametrize("name", ["a.parquet", "stream.arrow", "file.arrow"])
def test_tables_give_the_pairs_of_jsonl(name: str, tmp_path: Path, pyarrow: Any):
    path = write(tmp_path / name, ROWS, pyarrow)
    lines = tmp_path / "a.jsonl"
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    assert is_table(path)
    for columns in ((1, 2), (2, 1), ("en", "de"), (3, 2)):
        assert [*find_pairs([path], columns)] == [*find_pairs([lines], columns)]
    assert (
        find_pairs([path]).describe() == f"{path}: keys 'de' and 'en'; first pair: 'Wort 0\\t\"ä\"\\u2028' -> 'word 0'"
    )
    facts = check_corpus([path]).files[0]
    assert (facts.num_rows, facts.num_usable) == (2500, 2500)
    assert find_pairs([path]).fingerprint()["files"][0]["size"] == path.stat().st_size


def test_translations_may_be_nested_and_other_columns_are_let_be(tmp_path: Path, pyarrow: Any):
    rows = [{"image": b"\xff", "translation": {"de": "a", "en": "b"}, "list": [1], "score": 0.5}]
    assert [pair[:2] for pair in find_pairs([write(tmp_path / "a.parquet", rows, pyarrow)])] == [("a", "b")]


def test_answers_with_their_places_are_kept(tmp_path: Path, pyarrow: Any):
    rows = [{"question": "Who?", "answers": {"text": ["Ada"], "answer_start": [0]}}]
    (line,) = filter(None, data_lines(write(tmp_path / "a.parquet", rows, pyarrow)))
    assert json.loads(line) == rows[0]


@pytest.mark.parametrize("name", ["a.parquet", "stream.arrow", "file.arrow"])
def test_a_damaged_table_is_refused_by_name(name: str, tmp_path: Path, pyarrow: Any):
    path = write(tmp_path / name, ROWS, pyarrow)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(
        DataError, match=rf"{name}: cannot be read as a table: .*; fetch or write the file again"
    ) as caught:
        list(find_pairs([path]))
    assert "\n" not in str(caught.value)


READ = """
import io, random, sys
from pathlib import Path
import pyarrow
from pyarrow import parquet
from heedful.data.tables import data_lines, table_batches
from heedful.errors import HeedfulError

generator, outcomes = random.Random(1), {"read": 0, "refused": 0}
for path in map(Path, sys.argv[1:]):
    whole = path.read_bytes()
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(generator.choice((1, 3, 20))):
            damaged[generator.randrange(len(damaged))] = generator.choice((0, 255, generator.randrange(256)))
        path.write_bytes(bytes(damaged))
        try:
            for _ in data_lines(path): pass
            for batch in table_batches(path):
                parquet.write_table(pyarrow.Table.from_batches([batch]), io.BytesIO())
        except (HeedfulError, pyarrow.ArrowException):
            outcomes["refused"] += 1
        else:
            outcomes["read"] += 1
print(outcomes["read"], outcomes["refused"])
"""


def test_flipped_bytes_of_a_table_end_in_a_refusal_at_worst(tmp_path: Path, pyarrow: Any):
    """In a process of its own, because offsets that were not checked crashed it."""
    rows = [
        {
            "de": "Satz " * (number % 7),
            "en": f"word {number}",
            "both": {"a": "x", "b": ""},
            "ids": [number] * (number % 3),
        }
        for number in range(200)
    ]
    paths = [str(write(tmp_path / name, rows, pyarrow)) for name in ("a.parquet", "stream.arrow", "file.arrow")]
    done = subprocess.run(
        [sys.executable, "-c", READ, *paths], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-1000:])
    num_read, num_refused = map(int, done.stdout.split())
    assert num_read + num_refused == 450
    assert num_refused > 200


@pytest.mark.parametrize("head", [b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"])
def test_without_pyarrow_the_install_line_is_said(head: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.arrow"
    path.write_bytes(head + bytes(100))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=re.escape(install_command("parquet"))) as caught:
        find_pairs([path])
    assert caught.value.exit_code == 6


def test_text_is_no_table(tmp_path: Path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"a\tb\n")
    assert not is_table(path)
    assert [*data_lines(path)] == ["a\tb"]
    assert isinstance(data_lines(path), type(data_lines(tmp_path / "none")))
    assert not is_table(tmp_path / "none")


def saved(folder: Path, rows: list[dict[str, Any]], num_shards: int, pyarrow: Any) -> Path:
    """A folder such as `Dataset.save_to_disk` of Hugging Face's datasets writes."""
    folder.mkdir(parents=True)
    names = [f"data-{index:05}-of-{num_shards:05}.arrow" for index in range(num_shards)]
    size = -(-len(rows) // num_shards)
    for index, name in enumerate(names):
        write(folder / f"stream-{name}", rows[index * size : (index + 1) * size], pyarrow).rename(folder / name)
    state = {"_data_files": [{"filename": name} for name in names], "_split": "train"}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder


@pytest.mark.parametrize("num_shards", [1, 3])
def test_a_saved_folder_gives_its_rows(num_shards: int, tmp_path: Path, pyarrow: Any):
    folder = saved(tmp_path / "corpus", ROWS, num_shards, pyarrow)
    pairs = find_pairs([folder])
    assert [pair[:2] for pair in pairs] == [(row["de"], row["en"]) for row in ROWS]
    assert pairs.name == "corpus"
    before = pairs.fingerprint()
    part = folder / f"data-00000-of-{num_shards:05}.arrow"
    content = part.read_bytes()
    part.write_bytes(content.replace(b"Wort 1\t", b"Wort 7\t"))
    assert find_pairs([folder]).fingerprint() != before
    part.write_bytes(content)
    assert find_pairs([folder]).fingerprint() == before


def test_a_saved_folder_of_several_parts_names_them(tmp_path: Path, pyarrow: Any):
    for part in ("train", "validation"):
        saved(tmp_path / "corpus" / part, ROWS[:3], 1, pyarrow)
    (tmp_path / "corpus" / "dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
    with pytest.raises(DataError, match=r"several parts .* give one, such as \S*corpus.train, and others with --dev"):
        find_pairs([tmp_path / "corpus"])


@pytest.mark.parametrize(
    "state", ["{}", "[]", "{", '{"_data_files": [{"filename": "../x.arrow"}]}', '{"_data_files": 1}']
)
def test_a_damaged_list_of_files_is_refused(state: str, tmp_path: Path, pyarrow: Any):
    folder = saved(tmp_path / "corpus", ROWS[:3], 1, pyarrow)
    (folder / "state.json").write_text(state)
    with pytest.raises(DataError, match="save the folder again"):
        find_pairs([folder])


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_pipe_is_no_table_and_refused_without_waiting(tmp_path: Path):
    path = tmp_path / "pairs.parquet"
    os.mkfifo(path)
    assert not is_table(path)
    with pytest.raises(DataError, match="not a regular file"):
        check_data_file(path)


def test_numbers_of_classes_are_labels_by_their_names(tmp_path: Path, pyarrow: Any):
    from pyarrow import parquet

    classes = {"names": ["neg", "pos"], "_type": "ClassLabel"}
    for name, feature, labels in (
        ("one", classes, [0, 1, -1]),
        ("several", {"feature": classes, "_type": "List"}, [[0], [0, 1], []]),
    ):
        table = pyarrow.table({"text": ["a", "b", "c"], "label": labels})
        info = {"info": {"features": {"text": {"dtype": "string", "_type": "Value"}, "label": feature}}}
        path = tmp_path / f"{name}.parquet"
        parquet.write_table(table.replace_schema_metadata({"huggingface": json.dumps(info)}), path)
        file = find_labelled([path])
        assert file.has_label_sets == (name == "several")
        found = [split_labels(pair.target) if file.has_label_sets else pair.target for pair in file]
        assert found == ([("neg",), ("neg", "pos"), ()] if name == "several" else ["neg", "pos", ""])
