"""Answerer: a loaded model that answers questions about facts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, final

import numpy as np

from heedful.data.in_memory import example_files
from heedful.data.passages import encode_passage
from heedful.data.row_faults import LEFT_OUT
from heedful.data.rows import Columns
from heedful.data.stories import IMPOSSIBLE, Stories, answered_stories, encode_story, find_stories
from heedful.engines.label_arrays import Floats
from heedful.engines.labels import run_labels
from heedful.engines.passages import PassageArrays, passage_draw
from heedful.engines.spans import NO_ANSWER_SHIFT, best_answers
from heedful.engines.stories import StoryArrays, story_draw
from heedful.errors import DataError, UsageError
from heedful.evaluation.answers import AnswerReport, SpanReport, score_answers, score_spans
from heedful.evaluation.labels import UnseenLabels
from heedful.pages.attention_map import FactMap
from heedful.pages.attention_text import TextView
from heedful.pages.attention_view import AttentionView
from heedful.predictors.call_texts import checked_texts
from heedful.predictors.label_predictor import LabelPredictor
from heedful.search.inputs import InputDraw
from heedful.text.quoting import shortened
from heedful.text.stories import SEPARATOR, Story, parse_story, story_of

if TYPE_CHECKING:
    from heedful.export.archived_labels import ArchivedLabels

_FIRST_HAN: Final = 0x2E80
"""First character of the scripts without spaces between words."""
MOST_SPANS: Final = 5
"""Largest number of spans whose probabilities an answer lists."""
WINDOW_STORIES: Final = 2048
"""Number of stories that are sorted by length together, so that memory does not grow with the input."""


@final
@dataclass(frozen=True, eq=False)
class AnswerSpan:
    """Span of a passage, with the weights of the tokens of the passage."""

    passage: str
    """The facts with a space between them, normalized."""
    start: int
    """Index of the first character of the answer in the passage."""
    end: int
    """Index after the last character of the answer."""
    tokens: tuple[tuple[int, int], ...]
    """First character and the one after the last of each token that the model read."""
    facts: tuple[tuple[int, int], ...]
    """First character and the one after the last of each fact."""
    weights: Floats
    """[3, token] attention of the question to the passage, and the probabilities that the answer starts and ends at a
    token."""

    def to_dict(self) -> dict[str, Any]:
        """List all values.

        Returns:
            Values that JSON can hold; weights have six digits.
        """
        attention, starts, ends = ([round(weight, 6) for weight in row] for row in self.weights.tolist())
        return {
            "passage": self.passage,
            "start": self.start,
            "end": self.end,
            "tokens": [self.passage[first:after] for first, after in self.tokens],
            "attention": attention,
            "start_weights": starts,
            "end_weights": ends,
        }

    def sentences(self) -> list[list[tuple[str, float]]]:
        """Weigh the words of each fact.

        Returns:
            Words of each fact with the mean of their probabilities as start and as end.
        """
        words = [(first, after, float(own[1:].mean())) for first, after, own in self.words()]
        return [
            [(self.passage[first:after], own) for first, after, own in words if low - 1 <= first < max(high, 1)]
            for low, high in self.facts
        ]

    def words(self) -> list[tuple[int, int, Floats]]:
        """Add up the weights of the tokens of each word.

        Returns:
            First character of each word, with the space before it, the one after its last, and the [3] `weights`.
        """
        words: list[tuple[int, int, Floats]] = []
        for (first, after), own in zip(self.tokens, self.weights.T, strict=True):
            begun, end, sums = words[-1] if words else (first, first, own)
            if words and (not self.passage[begun:end].strip() or _is_within_word(self.passage, first)):
                words[-1] = begun, after, sums + own
            else:
                words.append((first, after, own))
        return words


def _is_within_word(text: str, index: int) -> bool:
    """Whether no word begins at a character: it and the one before are letters or digits of a script with spaces."""
    around = text[max(0, index - 1) : index + 1]
    return len(around) < 2 or all(one.isalnum() and ord(one) < _FIRST_HAN for one in around)


@final
@dataclass(frozen=True, eq=False)
class Answer:
    """Answer to a question, with the weights of the facts.

    Example:
        >>> Answer(Story(("Ada went to the attic.",), "Where is Ada?"), "attic", 0.9, {"attic": 0.9, "hall": 0.1})
        <Answer 'Where is Ada?' -> 'attic', probability 0.9000>
    """

    story: Story
    answer: str
    """Empty where the facts do not answer the question."""
    probability: float
    """Probability of `answer`, in [0, 1]."""
    probabilities: dict[str, float]
    """Probability of every answer, the most probable first; of spans, of the five most probable ones, in each text its
    most probable place."""
    weights: Floats | None = None
    """[step, fact] attention weights, the facts in the order of the story; None from a model without attention. For
    spans the steps are the start and the end of the answer."""
    was_cut: bool = False
    """Whether the story exceeded the model's length limit, so that its oldest facts or parts of texts were left out."""
    span: AnswerSpan | None = None
    """Place of the answer in the facts; None from a model that chooses one of the answers of its training data."""

    @property
    def steps(self) -> list[str]:
        """Names of the rows of `weights`."""
        if self.span is not None:
            return ["start", "end"]
        return [f"step {number}" for number in range(1, 1 + (0 if self.weights is None else len(self.weights)))]

    def __repr__(self) -> str:
        question = shortened(self.story.question)
        return f"<Answer {question} -> {self.answer!r}, probability {self.probability:.4f}>"


@final
class Answerer(LabelPredictor):
    """Loaded model for question answering."""

    noun = "question answerer"

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of the metrics that suit the answers, which are labels or spans."""
        return super().metrics if self.labels else ("answer_match", "answer_f1")

    def _draw(self, num_tokens: int) -> InputDraw:
        return story_draw(num_tokens) if self.labels else passage_draw(num_tokens)

    def archived(self, has_layers: bool = False) -> "ArchivedLabels":
        from heedful.export.archived_labels import ArchivedLabels

        return ArchivedLabels(self.folder, self.tokenizer, self.text, self.labels)

    def page_example(self, text: str) -> dict[str, str]:
        story = story_of_line(text)
        return {"source": "\n".join(story.facts), "question": story.question}

    def answer(self, stories: Iterable[Story | Mapping[str, Any]]) -> list[Answer]:
        """Answer questions.

        Args:
            stories: facts with a question each; or mappings with the keys "facts" and "question".

        Returns:
            One answer for each question, in order.

        Raises:
            UsageError: a single story was given, or an item is no story, such as None or NaN.
            DataError: a mapping is no story; the message has its index.

        Example:
            >>> answerer = heedful.load("facts.model", kind=Answerer)  # doctest: +SKIP
            >>> answerer.answer([{"facts": ["Ada went to the attic."], "question": "Where is Ada?"}])  # doctest: +SKIP
            [<Answer 'Where is Ada?' -> 'attic', probability 0.9981>]
        """
        if isinstance(stories, Story | Mapping | str):
            raise UsageError("answer: expected a list of stories, got a single one; put it into a list")
        if not hasattr(stories, "__iter__"):
            raise UsageError(f"answer: expected a list of stories, got {stories!r:.40}")
        return list(self.stream([_checked(story, f"answer: item {index}") for index, story in enumerate(stories)]))

    def stream(self, stories: Iterable[Story], window_stories: int = WINDOW_STORIES) -> Iterator[Answer]:
        """Answer any number of questions in constant memory.

        Args:
            stories: facts with a question each.
            window_stories: number of stories that are sorted by length together; 1 yields each answer at once.

        Yields:
            One answer for each question, in order.
        """
        if not self.labels:
            yield from self._spans(stories, window_stories)
            return
        run, remaining = self.label_run(), iter(stories)
        while window := list(islice(remaining, window_stories)):
            encoded = [encode_story(self.tokenizer, story, self.text) for story in window]
            log_probs, _, attention = run_labels(run, StoryArrays([ids for ids, _, _ in encoded]))
            for story, (_, number, was_cut), row, weights in zip(window, encoded, log_probs, attention, strict=True):
                order = np.argsort(-row, kind="stable")
                shares = {self.labels[index]: float(np.exp(row[index])) for index in order}
                best = self.labels[order[0]]
                yield Answer(story, best, shares[best], shares, _by_fact(weights, number, len(story.facts)), was_cut)

    def _spans(self, stories: Iterable[Story], window_stories: int) -> Iterator[Answer]:
        """Answers of a model that finds spans."""
        run, remaining = self.label_run(), iter(stories)
        shift = float(self.folder.facts.get(NO_ANSWER_SHIFT, 0.0)) if self.folder.facts.get(IMPOSSIBLE) else None
        while window := list(islice(remaining, window_stories)):
            encoded = [encode_passage(self.tokenizer, story, self.text) for story in window]
            log_probs, _, attention = run_labels(run, PassageArrays([passage.ids for passage in encoded]))
            for story, passage, row, weights in zip(window, encoded, log_probs, attention, strict=True):
                known = best_answers(passage, row, MOST_SPANS, shift)
                shares: dict[str, float] = {}
                for one in known:
                    shares.setdefault(one.text, one.probability)  # of its most probable place
                # The last position is EOS.
                parts = [*([] if weights is None else [weights]), np.exp(row)]
                own = np.concatenate(parts)[:, :-1]
                best, facts = known[0], passage.facts
                span = AnswerSpan(passage.text, best.start, best.end, passage.ranges, facts, own)
                by_fact = passage.by_fact(own[1:])
                yield Answer(story, best.text, shares[best.text], shares, by_fact, passage.was_cut, span)

    def measure(self, items: Any, metrics: tuple[str, ...] = (), beam: int = 0) -> AnswerReport | SpanReport:
        self._refuse_search(metrics, beam)
        if not isinstance(items, Stories):
            raise TypeError(f"a question answerer is measured on stories, got {type(items).__name__}")
        answers = [*self.stream(items.stories)]
        said, weights = [answer.answer for answer in answers], [answer.weights for answer in answers]
        supporting = [story.supporting for story in items.stories]
        if not self.labels:
            return score_spans(said, items.labels, supporting, weights)
        report = score_answers(said, items.labels, supporting, weights)
        unseen = UnseenLabels.of(([label] for label in items.labels), self.labels)
        return replace(report, answers=replace(report.answers, unseen=unseen))

    def evaluate(self, *data: Any, columns: Columns = (1, 2)) -> AnswerReport | SpanReport:
        """Answer questions and compare with their answers, as `heedful evaluate` does.

        Args:
            data: path of a file of stories, of any format that `heedful.data.stories.find_stories` reads; or stories in
                memory, dictionaries or a table with facts, question and answer.
            columns: must be (1, 2), because the names of columns and keys tell facts, question and answer.

        Returns:
            Scores of the answers, and the share of supporting facts attended.

        Raises:
            UsageError: other columns are named.
            DataError: the data are unusable, or have no stories.
        """
        if columns != (1, 2):
            raise UsageError("evaluate: columns are for pairs; name those of stories facts, question and answer")
        with example_files(data, "test") as files:
            items = self.read_items(files.paths)
        return self.measure(items)

    def predict(self, sources: Sequence[str]) -> list[str]:
        return [answer.answer for answer in self.stream(map(story_of_line, checked_texts(sources, "predict")))]

    def read_items(self, paths: tuple[Path, ...], columns: Columns = (1, 2)) -> Stories:
        file = find_stories(paths, leaves_out_faults=True)
        stories = tuple(answered_stories(file, keeps_impossible=not self.labels))
        items = Stories(stories, tuple(note for note in file.notes if LEFT_OUT in note))
        if not len(items):
            raise DataError(f"{paths[0]}: no stories")
        return items

    def attention_views(self, sources: Sequence[str]) -> list[AttentionView]:
        views: list[AttentionView] = []
        for one in self.stream(map(story_of_line, sources)):
            title = f"{one.story.question} → {one.answer}"
            if one.span is not None:
                views.append(TextView(title, one.span.sentences()))
            elif one.weights is not None and one.story.facts:
                views.append(FactMap(title, one.story.facts, one.steps, one.weights.tolist()))
        return views


def _checked(item: Any, where: str) -> Story:
    """Story of an item of a call.

    Raises:
        UsageError: the item is neither a story nor a mapping.
        DataError: a mapping is no story.
    """
    if isinstance(item, Story):
        return item
    if not isinstance(item, Mapping):
        kinds = "a story, or a dictionary with facts and question"
        raise UsageError(f"{where} is {item!r:.40}, of type {type(item).__name__}; give {kinds}")
    try:
        return story_of(cast(Mapping[str, Any], item))
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def story_of_line(line: str) -> Story:
    """Read a story from one line, as `heedful.data.stories.story_line` writes it.

    Returns:
        The story, without its answer.
    """
    if line.startswith("{"):
        return parse_story(line, "story", 1)
    *facts, question = line.split(SEPARATOR)
    return Story(tuple(facts), question)


def _by_fact(weights: Floats | None, num_encoded: int, num_facts: int) -> Floats | None:
    """Weights [step, fact] in the order of the story, of which the model saw the newest facts, the newest first."""
    if weights is None:
        return None
    ordered = np.zeros((len(weights), num_facts), dtype=np.float32)
    ordered[:, num_facts - num_encoded :] = weights[:, :num_encoded][:, ::-1]
    return ordered
