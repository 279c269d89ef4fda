"""Ensembles in one model folder."""

from pathlib import Path

import pytest

from heedful.engines.folder import commit, open_folder
from heedful.engines.members import join_members, members_of
from heedful.errors import FileRefused, UsageError


def make_folder(path: Path, weights: bytes, tokens: str = "abc") -> Path:
    path.mkdir()
    name = f"model-{weights.hex()[:8]}.safetensors"
    for each, content in ((name, weights), ("source.json", tokens.encode()), ("target.json", b"xyz")):
        (path / each).write_bytes(content)
    roles = {"weights": name, "source_tokenizer": "source.json", "target_tokenizer": "target.json"}
    commit(path, {"kind": "hard_attention", **roles}, [*roles.values()])
    return path


def test_members_share_a_folder_and_are_verified(tmp_path: Path):
    first, *others = (make_folder(tmp_path / str(seed), f"weights {seed}".encode()[::-1]) for seed in range(3))
    assert members_of(open_folder(first)) == []
    assert join_members(first, others) == 3
    joined = open_folder(first)
    assert [member.file("weights").read_bytes() for member in members_of(joined)] == [b"1 sthgiew", b"2 sthgiew"]
    assert joined.file("weights").read_bytes() == b"0 sthgiew"
    assert all(member.facts["source_tokenizer"] == "source.json" for member in members_of(joined))
    assert join_members(first, others[:1]) == 2  # joined again, with fewer
    assert len(members_of(open_folder(first))) == 1
    (member,) = members_of(open_folder(first))
    member.file("weights").write_bytes(b"other")
    with pytest.raises(FileRefused, match="changed since it was written"):
        open_folder(first)


def test_other_tokens_are_refused(tmp_path: Path):
    first = make_folder(tmp_path / "a", b"one")
    with pytest.raises(UsageError, match="has other tokens"):
        join_members(first, [make_folder(tmp_path / "b", b"two", "abd")])
    assert members_of(open_folder(first)) == []
