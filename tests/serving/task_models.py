"""Small models of every task besides translation, trained for a few steps: enough to serve, not to be right."""

from pathlib import Path
from typing import NamedTuple

from tests.tasks.reviews import write_reviews
from tests.tasks.scenes import write_scenes
from tests.tasks.stories import SETTINGS, SPAN_SETTINGS, write_notices, write_stories
from tests.tasks.test_captioning import Run as CaptioningRun
from tests.tasks.test_classification import Run


class TaskModels(NamedTuple):
    """Folders of the models."""

    classifier: Path
    answerer: Path
    """Of stories; its answers are labels."""
    finder: Path
    """Of notices; its answers are spans."""
    captioner: Path

    @property
    def picture(self) -> bytes:
        return next((self.captioner.parent / "scenes").glob("*.png")).read_bytes()


def train_task_models(folder: Path) -> TaskModels:
    """Train the models."""
    models = TaskModels(*(folder / f"{name}.model" for name in ("reviews", "stories", "notices", "scenes")))
    reviews = write_reviews(folder / "reviews.tsv", sentences=2)
    Run(reviews, models.classifier, "training.max_steps=4", "text.split_sentences=true", preset="hierarchical").train()
    stories, notices = write_stories(folder / "stories.jsonl", 100), write_notices(folder / "notices.jsonl", 60)
    for data, out, common, preset in (
        (stories, models.answerer, SETTINGS, "memory_network"),
        (notices, models.finder, SPAN_SETTINGS, "bidaf"),
    ):
        Run(data, out, "training.max_steps=4", task="answering", common=common, preset=preset).train()
    scenes = write_scenes(folder / "scenes.tsv", 40)
    CaptioningRun(scenes, models.captioner, "training.max_steps=4", preset="show_attend_tell").train()
    return models
