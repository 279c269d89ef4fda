"""Results on disk: complete, recognised, and refused when they are something else."""

import json
from pathlib import Path

import pytest

from heedful.comparison.run_result import (
    ComparedItems,
    RunResult,
    differing_tokenizers,
    find_run_result,
    read_record,
    run_key,
    write_record,
)
from heedful.errors import FileRefused, ResourceError
from tests.comparison.made import ITEMS, make_finding


def test_what_is_written_is_read(tmp_path: Path):
    result = make_finding("a b", 3, outputs=("é\u2028", "", '"'), measures={"aer": 0.25})
    write_record(tmp_path / "new" / "a.json", result)
    assert read_record(tmp_path / "new" / "a.json", RunResult) == result
    write_record(tmp_path / "items.json", ITEMS)
    assert read_record(tmp_path / "items.json", ComparedItems) == ITEMS
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.json"]


def test_only_the_same_run_is_found(tmp_path: Path):
    path = tmp_path / "a.json"
    assert find_run_result(path, "k", 60) is None
    result = make_finding("a", 3)
    write_record(path, result)
    assert find_run_result(path, "k", 60) == result
    assert find_run_result(path, "other", 60) is None
    assert find_run_result(path, "k", 59) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"row": 3}', "\xff"])
def test_what_was_changed_is_refused(text: str, tmp_path: Path):
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(FileRefused, match=r"a\.json: not what a comparison writes"):
        find_run_result(path, "k", 60)


def test_an_old_finding_stays_whole_where_a_new_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.json"
    write_record(path, make_finding("old", 3))

    def full(value: object, **options: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("heedful.comparison.run_result.json.dumps", full)
    with pytest.raises(ResourceError, match="No space left"):
        write_record(path, make_finding("new", 3))
    monkeypatch.undo()
    assert json.loads(path.read_bytes())["row"] == "old"
    assert [*tmp_path.iterdir()] == [path]


def test_a_key_depends_on_every_fact_and_on_no_order():
    assert run_key({"a": 1, "b": ["é"]}) == run_key({"b": ["é"], "a": 1})
    assert run_key({"a": 1}) != run_key({"a": 2})


def test_tokenizers_are_compared():
    first, second = make_finding("a", 1), make_finding("b", 1, tokenizers=("a", "c"))
    assert not differing_tokenizers([first, first])
    assert differing_tokenizers([first, second])
