"""Versions of files: older ones are gone on from with the same numbers, newer ones are refused and left in place."""

import ast
import json
import shutil
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from heedful.comparison.run_result import ComparedItems, read_record, write_record
from heedful.engines.exported import find_exported
from heedful.engines.folder import open_folder
from heedful.engines.shards import plan_jobs
from heedful.errors import FileRefused, NewerFormat
from heedful.files import formats as all_formats
from heedful.files.formats import ENCODED_FORMAT, KEY, PREPARED_FORMAT, Format
from heedful.files.records import read_facts, write_facts
from heedful.text.column_tokenizer import ColumnTokenizer
from heedful.text.dictionary import Dictionary
from heedful.text.marian import MarianTokenizer
from heedful.text.tokenizer import PieceTokenizer, UnitTokenizer
from heedful.text.tokenizer_files import load_tokenizer
from heedful.text.vocabulary import Vocabulary
from tests.architecture.package import SOURCE
from tests.cli.command import Done, heedful
from tests.seal import write_sealed

SAMPLES = Path(__file__).parents[1] / "samples" / "formats"
SAMPLE_NAMES = sorted((path.name for path in SAMPLES.iterdir() if path.is_dir()), key=int)
NEWEST = SAMPLE_NAMES[-1]
RUN_FILES = (
    "dictionary.tsv",
    "heedful.json",
    "run/checkpoints/000010/manifest.json",
    "run/data.json",
    "run/data/dictionary.json",
    "run/data/encoded.json",
    "run/data/links/encoded.json",
    "run/data/prepared.json",
    "run/data/tokenizers.json",
    "run/data/too_long.json",
    "run/experiment.toml",
    "run/metrics.jsonl",
    "tokenizer.json",
)
"""Files of a run that the same command reads before it trains on."""
RECORDS = {
    "run/data/encoded.json": ENCODED_FORMAT,
    "run/data/prepared.json": PREPARED_FORMAT,
    "run/data/tokenizers.json": PREPARED_FORMAT,
}
MAY_DIFFER = {"run/data/prepared.json", "run/experiment.toml", "run/report.html"}
"""The time of `pairs.tsv`; settings as the command gives them, every value resolved; a page made of the others."""


def train(folder: Path, *options: str) -> Done:
    command = ("train", folder.parent / "pairs.tsv", "--out", folder, "--threads", "1", "--quiet")
    return heedful(*command, "--config", SAMPLES / "sample.toml", *options)


def sample(version: str, folder: Path) -> Path:
    shutil.copy(SAMPLES / "pairs.tsv", folder)
    return Path(shutil.copytree(SAMPLES / version, folder / "model"))


def content(folder: Path) -> dict[str, bytes]:
    """All files of a folder but the lock, which names who holds it."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def validations(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{key: json.loads(line)[key] for key in ("step", "loss", "scores")} for line in lines]


def from_the_future(path: Path) -> None:
    """Make a file what a newer heedful may write: a version of one more, and a key that nobody knows yet."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        path.write_text(text.replace("format = 1\n", "format = 2\nunheard_of = 1\n"), encoding="utf-8")
    elif path.suffix == ".tsv":
        path.write_text(text.replace("dictionary 1\n", "dictionary 2\n"), encoding="utf-8")
    else:
        *before, last = [line for line in text.split("\n") if line] if path.suffix == ".jsonl" else [text]
        facts = json.loads(last)
        facts |= {KEY: facts.get(KEY, 1) + 1, "unheard of": [1, {"a": 2}]}
        if path.name == "manifest.json":
            del facts["sha256"]
            facts["sha256"] = sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        path.write_text("\n".join([*before, json.dumps(facts)]) + "\n", encoding="utf-8")


def hash_again(folder: Path, name: str) -> None:
    """Have the manifest of a model name a changed file."""
    manifest = json.loads((folder / "heedful.json").read_text(encoding="utf-8"))
    if name in manifest["files"]:
        manifest["files"][name] = sha256((folder / name).read_bytes()).hexdigest()
        write_sealed(folder / "heedful.json", manifest)


def refuses_newer(read: Callable[[], object], folder: Path) -> bool:
    """The contract of every format: whoever reads a newer file says so, and changes nothing."""
    before = content(folder)
    try:
        read()
    except NewerFormat as error:
        says = "made by a newer heedful" in str(error) and "update heedful" in str(error) and "\n" not in str(error)
        return says and error.exit_code == 3 and content(folder) == before
    return False


# ------------------------------------------------------------------------------------------------ whole runs


@pytest.mark.parametrize("version", SAMPLE_NAMES)
def test_a_run_of_every_format_goes_on_to_the_same_numbers(version: str, tmp_path: Path):
    folder = sample(version, tmp_path)
    done = train(folder, "--set", "training.max_steps=20")
    assert done.code == 0, done.err
    measured = validations(folder)
    expected = json.loads((SAMPLES / "validations.json").read_text(encoding="utf-8"))
    # Other processors round other last bits; on the one that made the samples all are equal.
    assert [line["step"] for line in measured] == [line["step"] for line in expected]
    for one, other in zip(measured, expected, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-5)
        # Earlier versions measured words by further scores than those that suit them.
        assert {"loss", "exact_match", "token_error_rate"} <= one["scores"].keys()
        shared = {key: score for key, score in other["scores"].items() if key in one["scores"]}
        assert {key: one["scores"][key] for key in shared} == pytest.approx(shared, rel=1e-4)


@pytest.mark.parametrize("file", RUN_FILES)
def test_a_run_of_a_newer_heedful_is_refused_and_left_as_it_is(file: str, tmp_path: Path):
    folder = sample(NEWEST, tmp_path)
    from_the_future(folder / file)
    before = content(folder)
    done = train(folder, "--set", "training.max_steps=10")
    assert done.code == 3, done.err
    assert len(done.errors) == 1
    assert "made by a newer heedful" in done.errors[0]
    assert f"{Path(file).name}: made by" in done.errors[0]
    after = content(folder)
    assert {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)} <= MAY_DIFFER - {file}


@pytest.mark.parametrize("file", ["config.toml", "tokenizer.json", "dictionary.tsv", "heedful.json"])
def test_a_model_of_a_newer_heedful_is_refused(file: str, tmp_path: Path):
    folder = sample(NEWEST, tmp_path)
    from_the_future(folder / file)
    hash_again(folder, file)
    before = content(folder)
    for command in ("info", "translate"):
        done = heedful(command, folder, stdin=b"one two\n")
        assert (done.code, len(done.errors)) == (3, 1), done.err
        assert "made by a newer heedful" in done.errors[0]
    assert content(folder) == before


@pytest.mark.parametrize("file", ["run/metrics.jsonl", "run/test.json"])
def test_info_refuses_what_it_would_show_of_a_newer_heedful(file: str, tmp_path: Path):
    folder = sample(NEWEST, tmp_path)
    (folder / "run/test.json").write_text('{"format": 1, "results": []}', encoding="utf-8")
    assert heedful("info", folder).code == 0
    from_the_future(folder / file)
    assert heedful("info", folder).code == 3


def test_unknown_keys_of_a_known_version_are_left_out(tmp_path: Path):
    folder = sample(NEWEST, tmp_path)
    state = folder / "run/checkpoints/000010/state.json"
    facts = json.loads(state.read_bytes())
    facts["state"]["unheard_of"] = {"a": 1}
    state.write_text(json.dumps(facts), encoding="utf-8")
    manifest = state.with_name("manifest.json")
    about = json.loads(manifest.read_bytes())
    about["files"]["state.json"] = sha256(state.read_bytes()).hexdigest()
    about["unheard of"] = 1
    del about["sha256"]
    about["sha256"] = sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()
    manifest.write_text(json.dumps(about), encoding="utf-8")
    path = folder / "heedful.json"
    write_sealed(path, {**json.loads(path.read_bytes()), "unheard of": 1})
    for name, kind in RECORDS.items():
        path = folder / name
        write_facts(path, kind, {**read_facts(path, kind, ""), "unheard of": 1})
    before = content(folder)
    done = train(folder, "--set", "training.max_steps=12")
    assert done.code == 0, done.err
    after = content(folder)
    assert all(after[name] == before[name] for name in RECORDS if name not in MAY_DIFFER)  # not made again
    assert [line["step"] for line in validations(folder)] == [4, 8, 10, 12]


# ------------------------------------------------------------------------------------------------ other files


def _engine(folder: Path) -> object:
    """Engines that cannot be used say why, so that another may be taken."""
    fault = find_exported(open_folder(folder), 9)["onnx"].fault
    if "made by a newer heedful" in fault:
        raise NewerFormat(fault)
    return fault


def _write_engine(folder: Path) -> Path:
    shutil.copytree(SAMPLES / NEWEST, folder, dirs_exist_ok=True)
    path = folder / "engines" / "onnx" / "engine.json"
    path.parent.mkdir(parents=True)
    parity = {"max_difference": 0.0, "num_compared": 1, "num_outputs": 1, "num_same": 1}
    path.write_text(json.dumps({KEY: 1, "engine": "onnx", "files": {}, "parity": parity}), encoding="utf-8")
    return path


def _plan(folder: Path) -> object:
    source = folder.parent / "a.txt"
    source.write_text("a\n", encoding="utf-8")
    return plan_jobs([source], folder, {"model": "m"}, 10)


def _write_shards(folder: Path) -> Path:
    _plan(folder)
    return folder / "shards.json"


ITEMS = ComparedItems(
    sources=("a",),
    references=(("b",),),
    target_language="",
    is_validation=False,
    default_metrics=("bleu",),
    data="d",
)


def _write_items(folder: Path) -> Path:
    write_record(folder / "items.json", ITEMS)
    return folder / "items.json"


def _write_marian(folder: Path) -> Path:
    pieces = PieceTokenizer.train(["a b c d e f g"] * 9, 300, "none")
    tokens = Vocabulary(["<pad>", "<unk>", "<bos>", "<eos>", "a"])
    return folder / MarianTokenizer(pieces.model, tokens).save(folder, "source")


def _write_vocabulary(folder: Path) -> Path:
    Vocabulary(["<pad>", "<unk>", "<bos>", "<eos>", "a"]).save(folder / "v.json")
    return folder / "v.json"


def _write_columns(folder: Path) -> Path:
    text = UnitTokenizer(Vocabulary(["<pad>", "<unk>", "<bos>", "<eos>", "a"]), "characters", "none")
    return folder / ColumnTokenizer(text, ("text", "features"), ("V", "PST")).save(folder, "source")


OTHERS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    "engine": (_write_engine, lambda folder: _engine(folder)),
    "shards": (_write_shards, lambda folder: _plan(folder)),
    "comparison": (_write_items, lambda folder: read_record(folder / "items.json", ComparedItems)),
    "marian": (_write_marian, lambda folder: MarianTokenizer.load(folder / "source.marian", "none")),
    "columns": (_write_columns, lambda folder: load_tokenizer(folder / "source.columns", "characters", "none")),
    "vocabulary": (_write_vocabulary, lambda folder: Vocabulary.load(folder / "v.json")),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_files_of_a_newer_heedful_are_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "held"
    folder.mkdir()
    write, read = OTHERS[kind]
    path = write(folder)
    read(folder)
    from_the_future(path)
    if path.suffix == ".marian":
        assert "unheard of" in path.read_text(encoding="utf-8")
    assert refuses_newer(lambda: read(folder), folder)
    # The contract rejects a reader that looks at no version.
    monkeypatch.setattr(Format, "check", lambda self, path, facts: 1)
    assert not refuses_newer(lambda: _suppressed(lambda: read(folder)), folder)


def _suppressed(read: Callable[[], object]) -> object:
    try:
        return read()
    except FileRefused:
        return None


def test_older_forms_are_read(tmp_path: Path):
    tokens = ["<pad>", "<unk>", "<bos>", "<eos>", "ä"]
    (tmp_path / "v.json").write_text(json.dumps(tokens), encoding="utf-8")
    assert list(Vocabulary.load(tmp_path / "v.json").tokens) == tokens
    (tmp_path / "d.tsv").write_text("Haus\thouse\n", encoding="utf-8")
    assert len(Dictionary.load(tmp_path / "d.tsv")) == 1
    (tmp_path / "items.json").write_text(json.dumps(ITEMS.model_dump(mode="json")), encoding="utf-8")
    assert read_record(tmp_path / "items.json", ComparedItems) == ITEMS


# ------------------------------------------------------------------------------------------------ the values


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.0, None, [1]])
def test_a_version_that_is_none_is_refused(version: object):
    with pytest.raises(FileRefused, match="is no version") as caught:
        Format("model", 3).check(Path("a"), {KEY: version})
    assert not isinstance(caught.value, NewerFormat)


def test_versions_up_to_the_newest_are_read():
    kind = Format("model", 3)
    assert [kind.check(Path("a"), {KEY: version}) for version in (1, 2, 3)] == [1, 2, 3]
    assert kind.check(Path("a"), {}) == 1
    assert kind.stamp({"a": 1}) == {KEY: 3, "a": 1}
    assert kind.strip(Path("a"), {"a": 1, KEY: 2}) == {"a": 1}
    with pytest.raises(NewerFormat, match=r"^a: made by a newer heedful \(model format 4; this one reads up to 3\);"):
        kind.check(Path("a"), {KEY: 4})
    with pytest.raises(FileRefused, match="format 0 is no version"):
        Format("model", unmarked=0).check(Path("a"), {})


def _used(names: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        if path.name != "formats.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names}
    return found


def test_every_format_is_used_and_has_a_sample():
    formats = {name: kind for name, kind in vars(all_formats).items() if isinstance(kind, Format)}
    assert _used([*formats]) == formats.keys()
    assert [*map(str, range(1, len(SAMPLE_NAMES) + 1))] == SAMPLE_NAMES
