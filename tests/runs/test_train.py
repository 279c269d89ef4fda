import json
import os
import signal
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.data import first_reading
from heedful.data.same_data import EXPERIMENT
from heedful.engines.folder import open_folder
from heedful.errors import ConfigError, DataError, FileRefused, ResourceError, Stopped, UsageError
from heedful.files.formats import ENCODED_FORMAT
from heedful.files.records import read_facts
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.runs.api import train_model
from heedful.runs.train import RunInfo
from heedful.training.progress import Outcome, Progress
from heedful.training.tensorboard import EVENTS
from tests.requests import make_request, train
from tests.thorough import thinned, thorough

ROWS = [
    ("one", "1"),
    ("two", "2"),
    ("eleven", "11"),
    ("twelve", "12"),
    ("twenty one", "21"),
    ("twenty two", "22"),
    ("one hundred", "100"),
    ("one hundred one", "101"),
    ("两百", "200"),
    ("三十二", "32"),
]
CHARACTERS = ("text.source_units=characters", "text.target_units=characters")
QUICK = (
    "training.optimizer.learning_rate=0.01",
    "training.optimizer.schedule.warmup_steps=20",
    "training.label_smoothing=0.0",
    "training.precision=float32",
    "training.select_by=exact_match",
    "training.batch_tokens=64",
    "model.dropout=0.0",
)
SIZES = {
    "transformer": (
        "model.num_encoder_layers=1",
        "model.num_decoder_layers=1",
        "model.model_size=32",
        "model.feedforward_size=64",
    ),
    "rnnsearch": (
        "model.kind=rnnsearch",
        "model.embedding_size=16",
        "model.hidden_size=24",
        "model.alignment_size=16",
        "model.maxout_size=16",
    ),
}


def write(path: Path, rows: Sequence[tuple[str, str]] = ROWS) -> Path:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8", newline="\n")
    return path


class Log:
    """Follows a training."""

    def __init__(self) -> None:
        self.watched: list[Progress] = []
        self.started: list[RunInfo] = []
        self.warned: list[str] = []

    @property
    def scores(self) -> list[tuple[int, dict[str, float]]]:
        return [(p.step, dict(p.validation.scores)) for p in self.watched if p.validation is not None]


def run(
    data: Path | tuple[Path, ...], out: Path, *settings: str, kind: str = "transformer", **options: object
) -> tuple[Outcome, Log]:
    log = Log()
    paths = data if isinstance(data, tuple) else (data,)
    recipe = make_request(paths, out, settings=(*CHARACTERS, *QUICK, *SIZES[kind], *settings), **options)  # type: ignore
    return train(recipe, log.watched.append, log.started.append, log.warned.append), log


@pytest.mark.parametrize("kind", thinned([*SIZES][::-1], 2))
def test_ten_pairs_are_learned_by_heart(kind: str, tmp_path: Path):
    out = tmp_path / "numbers.model"
    outcome, log = run(
        write(tmp_path / "numbers.tsv"), out, "training.max_steps=150", "training.validate_every=50", kind=kind
    )
    assert log.scores[-1][1]["exact_match"] == 100.0
    assert outcome.best == 100.0
    translator = load(out)
    found = translator.translate([source for source, _ in ROWS])
    assert [one.text for one in found] == [target for _, target in ROWS]
    # What the folder says of itself.
    facts = open_folder(out).facts
    assert facts["kind"] == kind
    assert {path.name for path in out.iterdir()} >= {"heedful.json", "config.toml", "tokenizer.json", "run"}
    assert len(list(out.glob("model-*.safetensors"))) == 1
    # Alignment comes with it.
    (one,) = translator.translate(["twenty one"], attention=True)
    assert one.attention is not None
    assert one.attention.shape == (len(one.target_pieces), len(one.source_pieces)) == (3, 11)
    assert one.attention.sum(axis=1).tolist() == pytest.approx([1.0] * 3, abs=1e-5)


@thorough
def test_pieces_learn_too(tmp_path: Path):
    data = write(tmp_path / "numbers.tsv", [*ROWS, *((f"x {i}", f"{i} y") for i in range(30))])
    log = Log()
    pieces = ("text.source_units=pieces", "text.target_units=pieces")
    settings = (*QUICK, *SIZES["transformer"], *pieces, "training.max_steps=200", "training.validate_every=100")
    recipe = make_request((data,), tmp_path / "m", settings=settings)
    train(recipe, log.watched.append, log.started.append, log.warned.append)
    assert log.scores[-1][1]["exact_match"] > 90.0
    assert (tmp_path / "m" / "tokenizer.model").is_file()


@pytest.mark.parametrize("is_there", [False, True])
def test_a_refused_request_leaves_nothing(is_there: bool, tmp_path: Path):
    out = tmp_path / "m"
    if is_there:
        out.mkdir()
    with pytest.raises(ConfigError, match="no score 'blue'"):
        run(write(tmp_path / "n.tsv"), out, "training.select_by=blue")
    assert [*out.iterdir()] == [] if is_there else not out.exists()


def test_what_is_known_before_the_first_step(tmp_path: Path):
    _, log = run(write(tmp_path / "n.tsv"), tmp_path / "m", "training.max_steps=2")
    (started,) = log.started
    assert started.folder == tmp_path / "m"
    assert started.step == 0
    num_tokens = len(load(tmp_path / "m").source_tokenizer)
    assert started.data.sizes == (num_tokens, num_tokens, True)
    assert started.num_parameters == sum(p.numel() for p in load(tmp_path / "m").model().parameters())
    assert "10 of 10 pairs kept" in started.data.report
    assert started.experiment.training.max_steps == 2
    assert started.experiment.training.validate_every >= 100  # chosen from the corpus
    assert len(started.data.test) == 0


def test_the_same_command_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data = write(tmp_path / "n.tsv")
    settings = ("training.max_steps=6", "training.validate_every=3")
    _, whole = run(data, tmp_path / "whole", *settings)
    calls = 0

    def stop(self: torch.nn.Module, *args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += self.training
        if calls == 4:
            calls += 1
            signal.raise_signal(signal.SIGTERM)
        return known(self, *args, **kwargs)

    from heedful.models.transformer import Transformer

    known = Transformer.forward
    with monkeypatch.context() as patch:
        patch.setattr(Transformer, "forward", stop)
        with pytest.raises(Stopped):
            run(data, tmp_path / "parts", *settings)
    outcome, log = run(data, tmp_path / "parts", *settings)
    assert outcome.step == 6
    assert log.started[0].step == 4
    assert log.scores == whole.scores[1:]
    digests = [open_folder(tmp_path / name).facts["files"] for name in ("whole", "parts")]
    assert digests[0] == digests[1]


@pytest.mark.parametrize("kind", thinned(SIZES, 2))
def test_links_of_words_are_found_once_and_kept_with_the_pairs(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    data = write(tmp_path / "n.tsv")
    settings = ("training.alignment_weight=0.5", "training.validate_every=3")
    _, log = run(data, tmp_path / "m", *settings, "training.max_steps=3", kind=kind)
    assert [line for line in log.started[0].data.report if line.endswith(" alignment links for guided alignment")]
    assert (tmp_path / "m" / "run" / "data" / "links" / "encoded.json").is_file()
    with pytest.raises(ConfigError, match=r"training\.alignment_weight = 0\.5, not 0\.0"):
        run(data, tmp_path / "m", "training.validate_every=3", "training.max_steps=6", kind=kind)
    monkeypatch.setattr("heedful.data.corpus_links.align_pairs", None)
    outcome, _ = run(data, tmp_path / "m", *settings, "training.max_steps=6", kind=kind)
    assert outcome.step == 6


@pytest.mark.parametrize("is_corrected", thinned([True, False], 2))
def test_attention_follows_links_corrected_by_hand(is_corrected: bool, tmp_path: Path):
    words = "abcdef"
    pairs = [(f"{x} {y} {z}", f"{x} {y} {z}".upper()) for x, y, z in permutations(words, 3)][::3]
    data = write(tmp_path / "w.tsv", pairs)
    links = tmp_path / "links.tsv"
    links.write_text("".join(f"{source}\t{target}\t0-2 1-0 2-1\n" for source, target in pairs), encoding="utf-8")
    settings = (
        *("text.source_units=words", "text.target_units=words", "training.alignment_weight=1"),
        *("training.max_steps=150", "training.validate_every=75", "training.export=false"),
        *((f"training.links={links}",) if is_corrected else ()),
    )
    _, log = run(data, tmp_path / "m", *settings, kind="rnnsearch")
    num_pairs = log.started[0].data.num_examples
    told = f"{links}: corrected links of {num_pairs} training pairs"
    assert (told in log.started[0].data.report) == is_corrected
    aligned = load(tmp_path / "m").align(pairs[:8])
    wanted = ((0, 2), (1, 0), (2, 1)) if is_corrected else ((0, 0), (1, 1), (2, 2))
    assert [pair.alignment for pair in aligned] == [wanted] * 8
    if is_corrected:
        links.write_text(links.read_text(encoding="utf-8").replace("0-2", "0-1"), encoding="utf-8")
        with pytest.raises(DataError, match=r"trained on other data \(links changed\)"):
            run(data, tmp_path / "m", *settings, kind="rnnsearch")


def test_links_without_guided_alignment_are_refused(tmp_path: Path):
    data, links = write(tmp_path / "n.tsv"), write(tmp_path / "l.tsv")
    with pytest.raises(ConfigError, match=r"training\.links: no links are taught; set training\.alignment_weight"):
        run(data, tmp_path / "m", f"training.links={links}")


def test_a_finished_training_says_so_and_more_steps_go_on(tmp_path: Path):
    data = write(tmp_path / "n.tsv")
    run(data, tmp_path / "m", "training.max_steps=3")
    outcome, log = run(data, tmp_path / "m", "training.max_steps=3")
    assert (outcome.step, outcome.reason, log.watched) == (3, "3 steps", [])
    outcome, _ = run(data, tmp_path / "m", "training.max_steps=5")
    assert outcome.step == 5


def test_the_step_it_goes_on_from_is_that_of_the_checkpoint_taken(tmp_path: Path):
    data = write(tmp_path / "n.tsv")
    run(data, tmp_path / "m", "training.max_steps=4", "training.validate_every=2")
    damaged = tmp_path / "m" / "run" / "checkpoints" / "000004" / "optimizer.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    _, log = run(data, tmp_path / "m", "training.max_steps=6", "training.validate_every=2")
    assert log.started[0].step == 2
    assert [line.endswith("using the previous one") for line in log.warned] == [True]


def test_a_run_whose_checkpoints_are_all_damaged_notes_that_it_failed(tmp_path: Path):
    data = write(tmp_path / "n.tsv")
    run(data, tmp_path / "m", "training.max_steps=4", "training.validate_every=2")
    for file in (tmp_path / "m/run/checkpoints").glob("*/model.safetensors"):
        file.write_bytes(b"")
    with pytest.raises(FileRefused):
        run(data, tmp_path / "m", "training.max_steps=6", "training.validate_every=2")
    events = [json.loads(line)["event"] for line in (tmp_path / "m/run/history.jsonl").read_bytes().split(b"\n")[:-1]]
    assert events == ["began", "finished", "began", "failed"]


def test_tensorboard_shows_a_training_that_asks_for_it(tmp_path: Path):
    pytest.importorskip("tensorboard", reason="needs TensorBoard: pip install 'heedful[tensorboard]'")
    data, out = write(tmp_path / "n.tsv"), tmp_path / "m"
    run(data, out, "training.max_steps=2")
    assert not (out / EVENTS).exists()
    run(data, out, "training.max_steps=4", "training.tensorboard=true")
    assert len(list((out / EVENTS).iterdir())) == 1


def test_other_settings_in_the_same_folder_are_refused(tmp_path: Path):
    data = write(tmp_path / "n.tsv")
    run(data, tmp_path / "m", "training.max_steps=2")
    for setting, said in (
        ("model.model_size=64", "a run with model.model_size = 32, not 64"),
        ("text.target_units=words", "a run with text.target_units = characters, not words"),
        ("training.seed=9", "a run with training.seed = 1, not 9"),
    ):
        with pytest.raises(ConfigError, match=said):
            run(data, tmp_path / "m", "training.max_steps=2", setting)
    assert run(data, tmp_path / "m", "training.max_steps=2")[0].step == 2


def test_a_run_begun_before_a_setting_existed_goes_on(tmp_path: Path):
    data, out = write(tmp_path / "a.tsv"), tmp_path / "a.model"
    run(data, out, "training.max_steps=4", "training.validate_every=2")
    kept = out / "run" / "experiment.toml"
    lines = kept.read_bytes().decode().split("\n")
    kept.write_bytes("\n".join(line for line in lines if not line.startswith(("source_vectors", "vectors"))).encode())
    outcome, _ = run(data, out, "training.max_steps=6", "training.validate_every=2")
    assert outcome.step == 6


@pytest.mark.parametrize("change", thinned(["byte", "more", "dev", "order"], 2))
def test_other_data_in_the_same_folder_is_refused(change: str, tmp_path: Path):
    data = write(tmp_path / "n.tsv")
    run(data, tmp_path / "m", "training.max_steps=2")
    rows = {
        "byte": [*ROWS[:9], ("三十二", "33")],
        "order": [ROWS[1], ROWS[0], *ROWS[2:]],
        "more": [*ROWS, ("six", "6")],
        "dev": ROWS,
    }[change]
    write(data, rows)
    dev = (write(tmp_path / "dev.tsv"),) if change == "dev" else ()
    with pytest.raises(DataError, match=f"other data \\({'dev' if change == 'dev' else 'train'} changed\\)"):
        run(data, tmp_path / "m", "training.max_steps=2", dev=dev)


def damage_data(data: Path, damage: str) -> None:
    """Damage the prepared pairs of a run."""
    if damage in ("source.ids", "target.ids", "source.offsets"):
        content = bytearray((data / damage).read_bytes())
        content[len(content) // 2] ^= 1
        (data / damage).write_bytes(content)
        return
    # A run of an earlier version, whose record has no checksums, with ids that no vocabulary has.
    facts = read_facts(data / "encoded.json", ENCODED_FORMAT, "")
    (data / "encoded.json").write_text(json.dumps({k: v for k, v in facts.items() if k != "files"}), encoding="utf-8")
    ids = np.fromfile(data / "target.ids", "<u2")
    ids[-1] = int(damage)
    ids.tofile(data / "target.ids")


@pytest.mark.parametrize("damage", thinned(["700", "source.offsets", "source.ids", "target.ids", "65535"], 5))
def test_damaged_pairs_are_prepared_again_and_train_the_same_weights(damage: str, tmp_path: Path):
    data = write(tmp_path / "n.tsv")
    weights: list[str] = []
    for name in ("whole", "damaged"):
        run(data, tmp_path / name, "training.max_steps=2", "training.validate_every=2")
        if name == "damaged":
            damage_data(tmp_path / name / "run/data", damage)
        _, log = run(data, tmp_path / name, "training.max_steps=4", "training.validate_every=2")
        assert any("prepared again" in line for line in log.started[0].data.report) == (name == "damaged")
        weights.append(str(open_folder(tmp_path / name).facts["weights"]))
    assert weights[0] == weights[1]


@pytest.mark.parametrize("change", ["grown", "replaced"])
def test_data_that_change_while_they_are_read_end_the_training(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    data, test = write(tmp_path / "n.tsv"), write(tmp_path / "t.tsv", [("six", "6")])
    make_split = first_reading.Split

    def change_then_split(*args: Any) -> first_reading.Split:
        if change == "grown":
            with data.open("ab") as file:
                file.write(b"seven\t7\n" * 3)
        else:
            write(test, [("eight", "8")])
        return make_split(*args)

    with monkeypatch.context() as patch:
        patch.setattr(first_reading, "Split", change_then_split)
        with pytest.raises(DataError, match=f"the {'train' if change == 'grown' else 'test'} data changed while"):
            run(data, tmp_path / "m", "training.max_steps=2", test=(test,))
    assert not (tmp_path / "m" / EXPERIMENT).exists()
    _, log = run(data, tmp_path / "m", "training.max_steps=2", test=(test,))
    assert len(log.started[0].data.report) >= 3


@pytest.mark.parametrize("has_model", [True, False])
def test_a_run_without_its_settings_is_not_begun_anew(has_model: bool, tmp_path: Path):
    data, folder = write(tmp_path / "n.tsv"), tmp_path / "m"
    run(data, folder, "training.max_steps=2")
    (folder / EXPERIMENT).unlink()
    if not has_model:
        (folder / "heedful.json").unlink()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}
    with pytest.raises(UsageError, match=r"but no run/experiment\.toml, so it cannot be resumed"):
        run(write(tmp_path / "o.tsv", [(f"x{i}", f"y{i}") for i in range(20)]), folder, "training.max_steps=2")
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "lock"}
    assert after == before


def test_a_refused_first_try_leaves_nothing_behind(tmp_path: Path):
    data = write(tmp_path / "n.tsv", ROWS[:5])
    with pytest.raises(DataError, match="at least 10"):
        run(data, tmp_path / "m", "training.max_steps=2")
    write(data)
    assert run(data, tmp_path / "m", "training.max_steps=2")[0].step == 2


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path):
    data = write(tmp_path / "n.tsv")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"")
    with pytest.raises(UsageError, match="holds files that are no training run; choose another --out"):
        run(data, tmp_path / "photos")
    with pytest.raises(UsageError, match="exists and is not a folder"):
        run(data, data)


def test_a_folder_that_another_training_is_at_work_in_is_left_alone(tmp_path: Path):
    data = write(tmp_path / "n.tsv")
    run(data, tmp_path / "m", "training.max_steps=2")
    before = {path: path.read_bytes() for path in (tmp_path / "m").rglob("*") if path.is_file()}
    seen: list[str] = []

    def start_another(facts: RunInfo) -> None:
        with pytest.raises(UsageError, match=f"m: process {os.getpid()} on .* is training in it; wait") as caught:
            run(data, tmp_path / "m", "training.max_steps=9")
        seen.append(str(caught.value))
        after = {path: path.read_bytes() for path in (tmp_path / "m").rglob("*") if path.is_file()}
        assert {path for path in before if before[path] != after[path]} <= {tmp_path / "m" / "run" / "lock"}

    settings = (*CHARACTERS, *QUICK, *SIZES["transformer"], "training.max_steps=2")
    train(make_request((data,), tmp_path / "m", settings=settings), lambda progress: None, start_another, print)
    assert len(seen) == 1
    assert run(data, tmp_path / "m", "training.max_steps=3")[0].step == 3


def test_a_folder_that_cannot_be_made_is_said_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(ResourceError, match="cannot be written: Permission denied"):
        run(write(tmp_path / "n.tsv"), tmp_path / "m")


def test_no_data_is_a_usage_error():
    with pytest.raises(UsageError, match="no data given"):
        train(make_request(()), print, print, print)


def test_columns_may_be_swapped_and_languages_with_them(tmp_path: Path):
    data = write(tmp_path / "n.tsv", [(target, source) for source, target in ROWS])
    out = tmp_path / "m"
    run(data, out, "training.max_steps=2", columns=(2, 1), languages=("en", "zh"))
    facts = open_folder(out).facts
    assert facts["languages"] == ["en", "zh"]
    kept = json.loads((out / "tokenizer.json").read_text(encoding="utf-8"))["tokens"]
    assert "w" in kept


@pytest.mark.parametrize(("columns", "languages"), [((1, 2), ("en", "zh")), ((2, 1), ("zh", "en"))])
def test_languages_are_read_off_the_names_of_files(
    columns: tuple[int, int], languages: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []

    def quick_scores(outputs: list[str], references: list[list[str]], language: str, **_: object) -> dict[str, float]:
        asked.append(language)
        return dict.fromkeys(("bleu", "chrf", "exact_match", "token_error_rate"), 0.0)

    monkeypatch.setattr("heedful.tasks.translation.quick_scores", quick_scores)
    files = tmp_path / "numbers.en", tmp_path / "numbers.zh"
    for side, file in enumerate(files):
        file.write_text("".join(row[side] + "\n" for row in ROWS), encoding="utf-8", newline="\n")
    run(files, tmp_path / "m", "training.max_steps=1", columns=columns)
    assert tuple(open_folder(tmp_path / "m").facts["languages"]) == languages
    assert asked == [languages[1]]  # BLEU's tokenizer goes by the language that is written


def test_one_file_does_not_tell_its_languages(tmp_path: Path):
    for name, columns in (("a", (1, 2)), ("b", (2, 1))):
        run(write(tmp_path / "n.tsv"), tmp_path / name, "training.max_steps=1", columns=columns)
        assert open_folder(tmp_path / name).facts["languages"] == ["source", "target"]


# ------------------------------------------------------------------------------------------- from Python


def options(*settings: str) -> dict[str, object]:
    tree = dict(setting.split("=", 1) for setting in (*CHARACTERS, *QUICK, *SIZES["transformer"], *settings))
    values = {key: json.loads(value) if value[0].isdigit() else value for key, value in tree.items()}
    return {"training.export": False, **values}


def test_training_from_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    data = write(tmp_path / "n.tsv")
    settings = options("training.max_steps=2")
    translator = train_model(data, out=tmp_path / "m", settings=settings, quiet=True)
    assert capsys.readouterr().out == ""
    assert len(translator.translate(["one"])) == 1
    again = train_model(str(data), out=str(tmp_path / "n"), dev=data, settings=settings, minutes=5)
    assert "10 of 10 pairs kept" in capsys.readouterr().out
    assert again.folder.path == tmp_path / "n"


@pytest.mark.parametrize("option", ["outt", "data", "steps"])
def test_an_option_that_does_not_exist_is_named(option: str, tmp_path: Path):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
        train_model(tmp_path / "n.tsv", **{option: 3})


@pytest.mark.parametrize(
    ("settings", "units", "kind"),
    [
        ((), "characters", "rnnsearch"),
        (("text.source_units=pieces", "text.target_units=pieces", "text.vocabulary_size=300"), "pieces", "rnnsearch"),
        (("text.target_units=words",), "characters", "rnnsearch"),
        (SIZES["transformer"] + ("model.kind=transformer",), "characters", "transformer"),
    ],
)
def test_short_items_choose_a_model_whatever_units_are_named(
    tmp_path: Path, settings: tuple[str, ...], units: str, kind: str
):
    seen: list[RunInfo] = []
    settings = (*settings, *QUICK, "training.max_steps=1")
    recipe = make_request((write(tmp_path / "p.tsv"),), tmp_path / "m", settings=settings)
    train(recipe, lambda progress: None, seen.append, print)
    assert (seen[0].experiment.text.source_units, seen[0].experiment.model.kind) == (units, kind)


def test_other_settings_of_the_search_reach_a_finished_model(tmp_path: Path):
    data = write(tmp_path / "n.tsv")
    run(data, tmp_path / "m", "training.max_steps=3", "search.beam=2")
    weights = open_folder(tmp_path / "m").facts["weights"]
    run(data, tmp_path / "m", "training.max_steps=3", "search.beam=4")
    assert open_folder(tmp_path / "m").facts["weights"] == weights
    assert load(tmp_path / "m", kind=Translator).search.beam == 4


def test_a_limit_of_time_shapes_no_settings_of_a_compared_run(tmp_path: Path):
    data, optimizers = (
        write(tmp_path / "n.tsv", [(f"{source} {n}", target) for n in range(9) for source, target in ROWS]),
        [],
    )
    quick = [setting for setting in QUICK if "optimizer" not in setting]
    for name, limits in (("plain", ()), ("timed", ("training.max_minutes=5",))):
        settings = (*CHARACTERS, *quick, *SIZES["transformer"], "training.max_steps=2", *limits)
        recipe = make_request((data,), tmp_path / name, settings=settings, is_compared=True)
        started: list[RunInfo] = []
        train(recipe, lambda progress: None, started.append, lambda line: None)
        training = started[0].experiment.training
        optimizers.append((training.optimizer, training.average, training.batch_tokens))
    assert optimizers[0] == optimizers[1]
    assert optimizers[0][0].kind == "adam"


def test_a_warm_up_takes_half_of_a_short_training_at_most(tmp_path: Path):
    data = write(tmp_path / "n.tsv")
    quick = [setting for setting in QUICK if "schedule" not in setting]
    settings = (*CHARACTERS, *quick, *SIZES["transformer"], "training.max_steps=4")
    started: list[RunInfo] = []
    request = make_request((data,), tmp_path / "m", settings=settings)
    train(request, lambda progress: None, started.append, lambda line: None)
    assert started[0].experiment.training.optimizer.schedule.warmup_steps == 2


def test_settings_from_python_are_those_of_the_command_line(tmp_path: Path):
    with pytest.raises(DataError, match=r"𠀀\.tsv"):
        train_model(
            write(tmp_path / "n.tsv"), settings={"training": {"links": "𠀀.tsv", "alignment_weight": 1.0}}, quiet=True
        )


def test_other_word_vectors_are_other_data(tmp_path: Path):
    data, vectors = write(tmp_path / "n.tsv"), tmp_path / "v.vec"
    size = "model.model_size=32"
    settings = (
        "training.max_steps=2",
        f'text.source_vectors="{vectors}"',
        "text.shared=false",
        "model.tie=target",
        size,
    )
    vectors.write_text(f"1 32\no {' '.join(['0.5'] * 32)}\n", encoding="utf-8")
    run(data, tmp_path / "m", *settings)
    vectors.write_text(f"1 32\no {' '.join(['0.25'] * 32)}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="source vectors"):
        run(data, tmp_path / "m", *settings)
