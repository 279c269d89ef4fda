"""A training goes on with its own data, or not at all."""

from pathlib import Path

import pytest

from heedful.data.same_data import claim_data
from heedful.errors import DataError

PRINTS = {"train": {"sha256": "a"}, "dev": {"sha256": "b"}}


def test_data_is_noted_and_other_data_is_refused(tmp_path: Path):
    (tmp_path / "run" / "data").mkdir(parents=True)
    claim_data(tmp_path, PRINTS, is_begun=False)
    assert not (tmp_path / "run" / "data").exists()
    claim_data(tmp_path, PRINTS, is_begun=True)
    with pytest.raises(DataError, match=r"other data \(dev, train changed\)"):
        claim_data(tmp_path, {"train": {"sha256": "c"}}, is_begun=True)
    claim_data(tmp_path, {"train": {"sha256": "c"}}, is_begun=False)
    claim_data(tmp_path, {"train": {"sha256": "c"}}, is_begun=True)
