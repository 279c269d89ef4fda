"""Test files are divided at commas as the training data of the model were."""

from pathlib import Path

import pytest

from heedful.engines.folder import ModelFolder
from heedful.predictors.source_columns import model_pairs


@pytest.mark.parametrize(
    ("facts", "targets"),
    [({}, ["kata,kada"]), ({"divides_targets": True}, ["kata", "kada"]), ({"divides_targets": 1}, ["kata,kada"])],
)
def test_a_file_of_few_letters_is_read_as_the_training_data(
    tmp_path: Path, facts: dict[str, object], targets: list[str]
):
    path = tmp_path / "test.tsv"
    path.write_text("kata\tkata,kada\n", encoding="utf-8")
    pairs = model_pairs(ModelFolder(tmp_path, facts), [path])
    assert [pair.target for pair in pairs] == targets


def test_two_aligned_files_stay_as_they_are(tmp_path: Path):
    for name, text in (("words.txt", "kata\n"), ("phones.txt", "kata,kada\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = [tmp_path / "words.txt", tmp_path / "phones.txt"]
    pairs = model_pairs(ModelFolder(tmp_path, {"divides_targets": True}), paths)
    assert [pair.target for pair in pairs] == ["kata,kada"]
