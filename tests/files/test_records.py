"""Records: written whole, and refused in one line where they are not what was written."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from heedful.data.prepared_files import read_prepared
from heedful.errors import FileRefused, NewerFormat
from heedful.files import records
from heedful.files.formats import Format
from heedful.files.records import read_facts, write_facts

KIND = Format("thing", 2)
FACTS = {"texts": ["a", "二"], "number": 0.1, "pair": (1, 2), "none": None}


def test_what_is_written_is_read(tmp_path: Path):
    path = tmp_path / "r.json"
    write_facts(path, KIND, FACTS)
    assert read_facts(path, KIND, "") == {**FACTS, "pair": [1, 2], "texts": ["a", "二"]}
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.json"]


def refusals(path: Path, damage: Callable[[bytes, int], bytes]) -> tuple[int, int]:
    """Number of damaged contents that are refused in one line, and of all that say something else."""
    whole = path.read_bytes()
    value = json.loads(whole)
    num_refused = num_damaged = 0
    for index in range(len(whole)):
        content = damage(whole, index)
        if content == whole:
            continue
        path.write_bytes(content)
        num_damaged += 1
        try:
            facts = read_facts(path, KIND, "do it again")
        except FileRefused as error:
            num_refused += "\n" not in str(error) and str(path) in str(error)
        else:
            num_damaged -= {**facts, "format": value["format"], "sha256": value["sha256"]} == value
    path.write_bytes(whole)
    return num_refused, num_damaged


DAMAGES: Mapping[str, Callable[[bytes, int], bytes]] = {
    "cut": lambda whole, index: whole[:index],
    "a bit": lambda whole, index: whole[:index] + bytes([whole[index] ^ 1 << index % 8]) + whole[index + 1 :],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_all_damage_is_refused(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "r.json"
    write_facts(path, KIND, {"texts": ["a", "二"], "number": 15})
    num_refused, num_damaged = refusals(path, DAMAGES[damage])
    # A flipped bit in the name of the checksum's key makes a record of an earlier version, as its content is.
    most = 8 * len("sha256") if damage == "a bit" else 0
    assert num_damaged - most <= num_refused <= num_damaged > 50
    if damage == "a bit":
        monkeypatch.setattr(records, "checksum", lambda facts: json.loads(path.read_bytes())["sha256"])
        assert refusals(path, DAMAGES[damage])[0] < num_refused


@pytest.mark.parametrize("content", ["[1]", "3", "null", '"a"', "", "{", "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_what_is_no_record_is_refused(content: str, tmp_path: Path):
    path = tmp_path / "r.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FileRefused, match=r"do it again$"):
        read_facts(path, KIND, "do it again")


def test_what_is_no_file_is_refused(tmp_path: Path):
    with pytest.raises(FileRefused, match=r"missing; do it again$"):
        read_facts(tmp_path / "r.json", KIND, "do it again")
    if os.name != "nt":
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(FileRefused, match=r"a pipe, not a file; do it again$"):
            read_facts(tmp_path / "pipe", KIND, "do it again")


def test_versions_are_told_before_damage_and_older_records_have_no_checksum(tmp_path: Path):
    path = tmp_path / "r.json"
    write_facts(path, KIND, {"a": 1})
    facts: dict[str, Any] = json.loads(path.read_bytes())
    path.write_text(json.dumps(facts | {"format": 3}), encoding="utf-8")
    with pytest.raises(NewerFormat):
        read_facts(path, KIND, "")
    path.write_text(json.dumps({"a": 2}), encoding="utf-8")
    assert read_facts(path, KIND, "") == {"a": 2}


@pytest.mark.skipif(os.name == "nt", reason="no named pipes")
def test_a_pipe_in_the_place_of_a_record_is_refused_rather_than_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "record.json")
    with pytest.raises(FileRefused, match="not a regular file; delete it"):
        write_facts(tmp_path / "record.json", KIND, FACTS)


def test_a_loop_of_links_in_the_place_of_a_record_is_refused(tmp_path: Path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(FileRefused, match="not a regular file"):
        write_facts(tmp_path / "one", KIND, FACTS)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no endless device")
def test_an_endless_record_of_prepared_data_is_refused(tmp_path: Path):
    (tmp_path / "prepared.json").symlink_to("/dev/zero")
    with pytest.raises(FileRefused, match="a device, not a file"):
        read_prepared(tmp_path / "prepared.json")


def test_bytes_that_are_no_utf8_are_question_marks(tmp_path: Path):
    write_facts(tmp_path / "r.json", KIND, {"name": "odd\udcff.tsv"})
    assert read_facts(tmp_path / "r.json", KIND, "")["name"] == "odd?.tsv"
