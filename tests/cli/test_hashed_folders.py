"""Commands verify the files of a model once."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from heedful.engines import folder
from tests.cli.command import heedful
from tests.cli.conftest import Trained

COMMANDS = (
    "evaluate {model} {data} --limit 3 --versus {other} --record",
    "evaluate {model} {data} --limit 3 --terms {terms}",
    "translate {model} a --terms {terms}",
    "translate {model} -i {data}",
    "score {model} {data} --total",
    "align {model} {data}",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_file_of_a_model_is_hashed_once(
    command: str, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("model", "other"):
        shutil.copytree(trained.model, tmp_path / name)
    (tmp_path / "terms").write_text("abc\tABC\n", encoding="utf-8")
    words = command.format(
        model=tmp_path / "model", other=tmp_path / "other", data=trained.data, terms=tmp_path / "terms"
    )
    hashed: Counter[Path] = Counter()
    digest = folder.digest

    def counting(path: Path) -> str:
        hashed[path] += 1
        return digest(path)

    monkeypatch.setattr(folder, "digest", counting)
    done = heedful(*words.split())
    assert done.code == 0, done.err
    assert hashed
    assert {path.name: number for path, number in hashed.items() if number > 1} == {}


def test_a_baseline_that_is_missing_is_refused_before_translating(trained: Trained, tmp_path: Path):
    done = heedful("evaluate", trained.model, trained.data, "--versus", tmp_path / "none")
    assert (done.code, done.out) == (2, "")
    assert "a second" not in done.err
