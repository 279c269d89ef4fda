"""Answerer: a loaded model that answers questions about facts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from heedful.data.rows import Columns
from heedful.data.stories import Stories, answered_stories, encode_story, find_stories
from heedful.errors import DataError, UsageError
from heedful.evaluation.answers import AnswerReport, score_answers
from heedful.pages.attention_map import AttentionMap
from heedful.pages.attention_view import AttentionView
from heedful.predictors.label_predictor import LabelPredictor
from heedful.runtime.label_arrays import Floats
from heedful.runtime.labels import run_labels
from heedful.search.stories import StoryArrays
from heedful.text.quoting import shortened
from heedful.text.stories import SEPARATOR, Story, story_of

WINDOW_STORIES: Final = 2048
"""Number of stories that are sorted by length together, so that memory does not grow with the input."""


@final
@dataclass(frozen=True, eq=False)
class Answer:
    """Answer to a question, with the weights of the facts."""

    story: Story
    answer: str
    probability: float
    """Probability of `answer`, in [0, 1]."""
    probabilities: dict[str, float]
    """Probability of every answer, the most probable first."""
    weights: Floats | None = None
    """[step, fact] attention weights, the facts in the order of the story; None from a model without attention."""
    was_cut: bool = False
    """Whether the story exceeded the model's length limit, so that its oldest facts or parts of texts were left out."""

    def __repr__(self) -> str:
        question = shortened(self.story.question)
        return f"<Answer {question} -> {self.answer!r}, probability {self.probability:.4f}>"


@final
class Answerer(LabelPredictor):
    """Loaded model for question answering."""

    noun = "question answerer"

    def answer(self, stories: Iterable[Story | Mapping[str, Any]]) -> list[Answer]:
        """Answer questions.

        Args:
            stories: facts with a question each; or mappings with the keys "facts" and "question".

        Returns:
            One answer for each question, in order.

        Raises:
            UsageError: a single story was given.
            DataError: a mapping is no story.

        Example:
            >>> answerer = load("facts.model", kind=Answerer)  # doctest: +SKIP
            >>> answerer.answer([{"facts": ["Ada went to the attic."], "question": "Where is Ada?"}])  # doctest: +SKIP
            [<Answer 'Where is Ada?' -> 'attic', probability 0.9981>]
        """
        if isinstance(stories, Story | Mapping | str):
            raise UsageError("answer: expected a list of stories, got a single one; put it into a list")
        return list(self.stream(story if isinstance(story, Story) else story_of(story) for story in stories))

    def stream(self, stories: Iterable[Story], window_stories: int = WINDOW_STORIES) -> Iterator[Answer]:
        """Answer any number of questions in constant memory.

        Args:
            stories: facts with a question each.
            window_stories: number of stories that are sorted by length together; 1 yields each answer at once.

        Yields:
            One answer for each question, in order.
        """
        run, remaining = self.label_run(), iter(stories)
        while window := list(islice(remaining, window_stories)):
            encoded = [encode_story(self.tokenizer, story, self.text) for story in window]
            log_probs, _, attention = run_labels(run, StoryArrays([ids for ids, _, _ in encoded]))
            for story, (_, number, was_cut), row, weights in zip(window, encoded, log_probs, attention, strict=True):
                order = np.argsort(-row, kind="stable")
                shares = {self.labels[index]: float(np.exp(row[index])) for index in order}
                best = self.labels[order[0]]
                yield Answer(story, best, shares[best], shares, _by_fact(weights, number, len(story.facts)), was_cut)

    def measure(self, items: Any) -> AnswerReport:
        if not isinstance(items, Stories):
            raise TypeError(f"a question answerer is measured on stories, got {type(items).__name__}")
        answers = [*self.stream(items.stories)]
        return score_answers(
            [answer.answer for answer in answers],
            items.labels,
            [story.supporting for story in items.stories],
            [answer.weights for answer in answers],
        )

    def evaluate(self, path: str | Path) -> AnswerReport:
        """Answer the questions of a file and compare with its answers, as `heedful evaluate` does.

        Args:
            path: file of stories, of any format that `heedful.data.stories.find_stories` reads.

        Returns:
            Scores of the answers, and the share of supporting facts attended.
        """
        return self.measure(self.read_items((Path(path),)))

    def predict(self, sources: Sequence[str]) -> list[str]:
        return [answer.answer for answer in self.stream(map(_story_of, sources))]

    def read_items(self, paths: tuple[Path, ...], columns: Columns = (1, 2)) -> Stories:
        items = Stories(tuple(answered_stories(find_stories(paths))))
        if not len(items):
            raise DataError(f"{paths[0]}: no stories")
        return items

    def attention_views(self, sources: Sequence[str]) -> list[AttentionView]:
        views: list[AttentionView] = []
        for one in self.stream(map(_story_of, sources)):
            if one.weights is not None and one.story.facts:
                steps = [f"step {step}" for step in range(1, len(one.weights) + 1)]
                title = f"{one.story.question} → {one.answer}"
                views.append(AttentionMap(title, one.story.facts, steps, one.weights.tolist()))
        return views


def _story_of(line: str) -> Story:
    """Story of a line that has its facts and question."""
    *facts, question = line.split(SEPARATOR)
    return Story(tuple(facts), question)


def _by_fact(weights: Floats | None, num_encoded: int, num_facts: int) -> Floats | None:
    """Weights [step, fact] in the order of the story, of which the model saw the newest facts, the newest first."""
    if weights is None:
        return None
    ordered = np.zeros((len(weights), num_facts), dtype=np.float32)
    ordered[:, num_facts - num_encoded :] = weights[:, :num_encoded][:, ::-1]
    return ordered
