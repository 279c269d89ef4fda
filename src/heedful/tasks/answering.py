"""Question answering: facts and a question, whose answer is one of those of the training data."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from heedful.config import Tree
from heedful.data.prepare import TOKENIZER_LINES
from heedful.data.split import MIN_PAIRS, Split
from heedful.data.stories import (
    Stories,
    StoryFile,
    answered_stories,
    distinct_stories,
    encode_story,
    find_stories,
    story_pair,
)
from heedful.errors import DataError, FileRefused
from heedful.experiment import Experiment
from heedful.search.stories import StoryArrays
from heedful.tasks.interface import Recipe
from heedful.tasks.label_task import MOST_LABELS, LabelTask, store_items
from heedful.text.counts import counted
from heedful.text.stories import Story, story_of
from heedful.text.tokenizer import TextConfig, Tokenizer


@final
class Answering(LabelTask[StoryFile]):
    """Task of question answering: from stories to a `heedful.predictors.answerer.Answerer`."""

    name = "answering"
    default_preset = "memory_network"
    command = "answer"
    kinds = frozenset({"memory_network"})
    arrays = StoryArrays

    def find(self, recipe: Recipe) -> dict[str, StoryFile]:
        parts = {"train": recipe.data, "dev": recipe.dev, "test": recipe.test}
        return {name: find_stories(paths) for name, paths in parts.items() if paths}

    def suited(self, files: Mapping[str, StoryFile], resolve: Callable[[Tree], Experiment]) -> Tree:
        return {
            "text": {"max_characters": 100_000, "max_tokens": 1_000},
            "training": {"optimizer": {"learning_rate": 0.003}},
        }

    def write_prepared(self, files: Mapping[str, StoryFile], config: TextConfig, folder: Path) -> None:
        file = files["train"]
        read = [*answered_stories(file)]
        stories = distinct_stories(read)
        if len(stories) < MIN_PAIRS:
            raise DataError(f"{file.path}: {counted(len(stories), 'story')}; training needs at least {MIN_PAIRS}")
        split = Split(len(stories), "dev" in files, "test" in files)
        parts: dict[str, list[Story]] = {"train": [], "dev": [], "test": []}
        for story in stories:
            parts[split(story_pair(story))].append(story)
        for name in ("dev", "test"):
            if name in files:
                parts[name] = [*answered_stories(files[name])]
        parts["dev"] = parts["dev"] or parts["train"]
        labels = sorted({story.answer for story in parts["train"]})
        if not 2 <= len(labels) <= min(MOST_LABELS, len(parts["train"]) // 2):
            raise DataError(
                f"{file.path}: {len(labels):,} different answers in {len(parts['train']):,} stories; the answers are "
                f"chosen from 2 to {MOST_LABELS:,} that occur twice or more on average"
            )
        report = [
            *(part.describe() for part in files.values()),
            f"{len(stories):,} of {len(read):,} stories kept, without repeated ones",
            f"{len(parts['train']):,} stories for training, {len(parts['dev']):,} for validation, "
            f"{len(parts['test']):,} for testing; {counted(len(labels), 'answer')}: {', '.join(labels[:10])}",
        ]
        texts = chain.from_iterable((story.question, *story.facts) for story in parts["train"])
        encoded = partial(_encoded, parts["train"], labels, config)
        sets = {name: [asdict(story) for story in parts[name]] for name in ("dev", "test")}
        facts = {"report": report, **sets}
        lines = [*islice(texts, TOKENIZER_LINES)]
        store_items(folder, self.prepared_path, lines, config, len(stories), labels, encoded, facts)

    def items(self, stored: Any) -> Stories:
        try:
            return Stories(tuple(map(story_of, stored)))
        except (DataError, AttributeError) as error:
            raise FileRefused(str(error)) from None

    def encode(self, items: Any, tokenizer: Tokenizer, config: TextConfig) -> list[NDArray[np.int64]]:
        return [encode_story(tokenizer, story, config)[0] for story in items.stories]


def _encoded(
    stories: list[Story], labels: list[str], config: TextConfig, tokenizer: Tokenizer
) -> Iterator[tuple[list[int], list[int]]]:
    numbers = {label: number for number, label in enumerate(labels)}
    for story in stories:
        yield encode_story(tokenizer, story, config)[0].tolist(), [numbers[story.answer]]
