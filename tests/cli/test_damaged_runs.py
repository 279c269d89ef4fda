"""Files of a run that are empty, cut or of another kind: refused in one line, or made again, never a bug."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from heedful.files.records import CHECKSUM
from tests.cli.command import Done, heedful
from tests.cli.conftest import Trained
from tests.thorough import sampled, thinned

RECORDS = (
    "heedful.json",
    "run/data.json",
    "run/data/prepared.json",
    "run/data/tokenizers.json",
    "run/data/too_long.json",
    "run/data/encoded.json",
    "run/test.json",
    "run/metrics.jsonl",
    "run/history.jsonl",
    "engines/ctranslate2/engine.json",
)
"""Files of JSON that `train` makes and reads again."""
OTHERS = ("config.toml", "tokenizer.json", "run/experiment.toml", "run/data/source.ids", "run/data/target.offsets")
DAMAGES: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "no object": lambda whole: b"{}\n",
}
KINDS: tuple[Any, ...] = (None, -1, 1e300, "x", [], {}, [[]], {"a": None}, True)


@pytest.fixture(scope="session")
def whole(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model with an engine and test scores, and its data beside it."""
    folder = tmp_path_factory.mktemp("whole")
    shutil.copytree(trained.model, folder / "m")
    assert heedful("export", folder / "m", "--to", "ctranslate2").code == 0
    assert {name for name in RECORDS if (folder / "m" / name).is_file()} == {*RECORDS}
    return folder / "m"


def commands(trained: Trained, model: Path) -> Iterator[Done]:
    """The commands that read the files of a run; training goes on for four steps."""
    yield heedful("info", model)
    yield heedful("report", model)
    yield heedful("translate", model, "abc", "--engine", "torch")
    yield heedful("translate", model, "abc", "--beam", "1")
    yield heedful("train", trained.data, "--out", model, "--config", trained.config, "--set", "training.max_steps=12")
    yield heedful("info", model)


def complaints(trained: Trained, model: Path) -> list[str]:
    """What went wrong beyond a refusal in one line."""
    said: list[str] = []
    for done in commands(trained, model):
        is_refusal = done.code in (2, 3) and len(done.errors) == 1 and "bug in heedful" not in done.err
        if "Traceback" in done.err or not (done.code == 0 or is_refusal):
            said.append(f"{done.code}: {done.err}")
    return said


@sampled(3)
@pytest.mark.parametrize("damage", thinned(DAMAGES, 3))
@pytest.mark.parametrize("file", [*RECORDS, *OTHERS])
def test_damaged_files_of_a_run(file: str, damage: str, trained: Trained, whole: Path, tmp_path: Path):
    model = tmp_path / "m"
    shutil.copytree(whole, model)
    (model / file).write_bytes(DAMAGES[damage]((model / file).read_bytes()))
    assert complaints(trained, model) == []


def keys_of(value: Any) -> list[tuple[str | int, ...]]:
    """Places in a JSON value, at most two levels deep and of a list the first."""
    if isinstance(value, dict):
        items: list[tuple[str | int, Any]] = [*value.items()]
    else:
        items = [(0, value[0])] if isinstance(value, list) and value else []
    return [place for key, inner in items for place in ((key,), *((key, *rest) for rest in keys_of(inner)[:40]))]


def replaced(value: Any, place: tuple[str | int, ...], other: Any) -> Any:
    """A copy of a JSON value with another one in a place."""
    copy = json.loads(json.dumps(value))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = other
    return copy


@sampled(2)
@pytest.mark.parametrize("file", thinned(RECORDS, 6))
def test_values_of_another_kind_in_records_of_earlier_versions(
    file: str, trained: Trained, whole: Path, tmp_path: Path
):
    path = whole / file
    *before, line = (
        [text for text in path.read_text(encoding="utf-8").split("\n") if text]
        if "jsonl" in file
        else [path.read_text(encoding="utf-8")]
    )
    facts = {key: value for key, value in json.loads(line).items() if key != CHECKSUM}
    places = [place for place in keys_of(facts) if len(place) <= 2]
    cases = [(place, KINDS[(index + shift) % len(KINDS)]) for index, place in enumerate(places) for shift in (0, 4)]
    for number, (place, other) in enumerate(cases[:: max(1, len(cases) // 3)]):
        model = tmp_path / f"{number}"
        shutil.copytree(whole, model)
        text = json.dumps(replaced(facts, place, other))
        (model / file).write_text("\n".join([*before, text]) + "\n", encoding="utf-8")
        assert complaints(trained, model) == [], (place, other)
        shutil.rmtree(model)


def test_a_training_that_improves_nothing_does_not_pass_a_damaged_model_off_as_its_own(tmp_path: Path):
    texts = [
        f"{'good' if number % 2 else 'bad'} film {number}\t{'pos' if number % 2 else 'neg'}" for number in range(40)
    ]
    (tmp_path / "films.tsv").write_text("\n".join([*texts, ""]), encoding="utf-8")
    data = (
        "train",
        tmp_path / "films.tsv",
        "--dev",
        tmp_path / "films.tsv",
        "--task",
        "classification",
        "--threads",
        "1",
    )
    limits = ("training.optimizer.learning_rate=1e-30", "training.average=0", "training.export=false")
    settings = [word for limit in (*limits, "training.validate_every=2") for word in ("--set", limit)]
    out = tmp_path / "films.model"
    assert heedful(*data, "--out", out, *settings, "--set", "training.max_steps=4").code == 0
    manifest = out / "heedful.json"
    manifest.write_bytes(DAMAGES["cut"](manifest.read_bytes()))
    done = heedful(*data, "--out", out, *settings, "--set", "training.max_steps=8")
    assert done.code == 3
    assert str(manifest) in done.errors[0]
