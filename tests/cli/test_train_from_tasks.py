"""`heedful train --from` for documents, stories and pictures."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from heedful.config.base import read_toml
from tests.cli.command import Done, heedful
from tests.tasks.reviews import SETTINGS as REVIEW_SETTINGS
from tests.tasks.reviews import write_reviews
from tests.tasks.scenes import SETTINGS as SCENE_SETTINGS
from tests.tasks.scenes import write_scenes
from tests.tasks.stories import SETTINGS as STORY_SETTINGS
from tests.tasks.stories import SPAN_SETTINGS, write_notices, write_stories
from tests.thorough import thinned

TASKS = {
    "classification": (write_reviews, REVIEW_SETTINGS, "reviews.tsv", "classification"),
    "answering": (write_stories, STORY_SETTINGS, "stories.jsonl", "answering"),
    "spans": (write_notices, SPAN_SETTINGS, "notices.jsonl", "answering"),
    "captioning": (write_scenes, SCENE_SETTINGS, "scenes.tsv", "captioning"),
}


def train(data: Path, out: Path, *more: object) -> Done:
    return heedful("train", data, "--out", out, "--set", "training.max_steps=20", *more)


def options(settings: tuple[str, ...]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def weights_of(model: Path) -> dict[str, torch.Tensor]:
    (path,) = model.glob("model-*.safetensors")
    return load_file(path)


@pytest.mark.parametrize("name", thinned(TASKS, 2))
def test_a_model_of_any_task_goes_on_with_its_ids_sizes_and_weights(name: str, tmp_path: Path):
    write, settings, file, task = TASKS[name]
    old, new = tmp_path / "old.model", tmp_path / "new.model"
    (tmp_path / "new").mkdir()
    done = train(write(tmp_path / file), old, "--task", task, *options(settings))
    assert done.code == 0, done.err
    data = write(tmp_path / "new" / file, seed=7)
    still = ("--set", "training.optimizer.learning_rate=1e-30", "--set", "training.average=0")
    command = ("--from", old, "--set", "training.export=false", *still)
    done = train(data, new, *command)
    assert done.code == 0, done.err
    before, after = weights_of(old), weights_of(new)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    for path in (*old.glob("tokenizer*"), *old.glob("labels.json")):
        assert (new / path.name).read_bytes() == path.read_bytes()
    for section in ("text", "model"):
        assert read_toml(old / "config.toml")[section] == read_toml(new / "config.toml")[section]
    (own,) = (line for line in done.out.split("\n") if line.startswith("own:"))
    before_text, after_text = own.removeprefix("own:").split(" after, ")[0].split(" before, ")
    assert before_text.strip() == after_text.strip(), "the weights did not change, so neither did the score"
    again = train(data, new, *command, "--set", "training.max_steps=24")
    assert again.code == 0, again.err
    assert "resuming at step 20" in again.err


def test_labels_that_the_model_does_not_know_are_refused(tmp_path: Path):
    old = tmp_path / "old.model"
    assert (
        train(write_reviews(tmp_path / "reviews.tsv"), old, "--task", "classification", *options(REVIEW_SETTINGS)).code
        == 0
    )
    data = tmp_path / "more.tsv"
    data.write_text(
        write_reviews(data, seed=3).read_text("utf-8").replace("\tgood\n", "\tsplendid\n"), "utf-8", newline="\n"
    )
    done = train(data, tmp_path / "new.model", "--from", old)
    assert done.code == 2
    assert "1 label unknown to the model of --from: splendid; it has bad, good; leave these rows out" in done.err


def test_a_label_that_is_missing_keeps_its_place(tmp_path: Path):
    old, new = tmp_path / "old.model", tmp_path / "new.model"
    assert (
        train(write_reviews(tmp_path / "reviews.tsv"), old, "--task", "classification", *options(REVIEW_SETTINGS)).code
        == 0
    )
    data = write_reviews(tmp_path / "more.tsv", seed=3)
    rows = [line for line in data.read_text("utf-8").splitlines(keepends=True) if line.endswith("\tgood\n")]
    data.write_text("".join(rows), "utf-8", newline="\n")
    done = train(data, new, "--from", old, "--set", "training.export=false")
    assert done.code == 0, done.err
    assert (new / "labels.json").read_bytes() == (old / "labels.json").read_bytes()


def test_what_the_first_steps_of_fresh_weights_do_is_behind_a_trained_model(tmp_path: Path):
    write, settings, file, task = TASKS["answering"]
    data = write(tmp_path / file)
    still = ("training.max_steps=4", "training.export=false")
    begun = options((*settings, "model.start=linear", "model.start_batches=2", *still))
    assert train(data, tmp_path / "old", "--task", task, *begun).code == 0
    done = train(data, tmp_path / "new", "--from", tmp_path / "old", *options(still))
    assert done.code == 0, done.err
    assert read_toml(tmp_path / "old/config.toml")["model"]["start"] == "linear"
    assert read_toml(tmp_path / "new/config.toml")["model"]["start"] == "none"
