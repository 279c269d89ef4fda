"""Question answering: facts and a question; the answer is one of those of the training data, or a span of the facts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from math import log
from pathlib import Path
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from heedful.config.base import Tree, merge
from heedful.data.label_kinds import MOST_LABELS
from heedful.data.passages import answer_place, encode_passage
from heedful.data.prepared_tokenizers import TOKENIZER_LINES
from heedful.data.rows import are_open
from heedful.data.split import MIN_PAIRS, Split, on_training
from heedful.data.stories import (
    IMPOSSIBLE,
    MOST_WITHOUT,
    Stories,
    StoryFile,
    answered_stories,
    distinct_stories,
    encode_story,
    find_stories,
    story_pair,
)
from heedful.engines.folder import commit, open_folder
from heedful.engines.labels import run_labels
from heedful.engines.passages import PassageArrays
from heedful.engines.spans import NO_ANSWER_SHIFT, best_answers, choose_shift, no_answer
from heedful.engines.stories import StoryArrays
from heedful.errors import DataError, FileRefused, UsageError
from heedful.evaluation.answers import score_spans, span_scores
from heedful.models.label_model import label_run
from heedful.models.store import load_model
from heedful.tasks.experiment import Experiment
from heedful.tasks.interface import DataPaths
from heedful.tasks.label_files import check_labels, kept_labels, store_items
from heedful.tasks.label_task import LabelData, LabelTask, Reader, SourceKind
from heedful.tasks.landing import Course, plan_landing
from heedful.tasks.throughput import Throughput
from heedful.text.counts import counted
from heedful.text.quoting import listed
from heedful.text.stories import Story, story_of
from heedful.text.tokenizer import TextConfig, Tokenizer

COURSE: Final = Course((16, 64), 3_000, (3, 60))
LEARNING_RATE: Final = 3e-3
"""Peak learning rate of Adam."""
LEAST: Final = 1e-30
"""Least probability whose logarithm is taken."""


@final
class AnsweringTask(LabelTask[StoryFile]):
    """Task of question answering: from stories to a `heedful.predictors.answerer.Answerer`.

    The answer is one of those of the training data, or a span of the facts; the kind of the model decides.
    """

    name = "answering"
    default_preset = "memory_network"
    examples = "questions"
    command = "answer"
    kinds = frozenset({"memory_network", "bidaf"})
    higher_is_better: ClassVar = {**LabelTask.higher_is_better, "f1": True}

    def arrays(self, experiment: Experiment) -> SourceKind:
        return PassageArrays if _has_spans(experiment) else StoryArrays

    def find(self, paths: DataPaths) -> dict[str, StoryFile]:
        if not are_open(paths.columns):
            raise UsageError("--columns: stories are no pairs of columns; leave it out")
        return {name: find_stories(files, leaves_out_faults=True) for name, files in paths.parts.items()}

    def file_defaults(self, files: Mapping[str, StoryFile], resolve: Callable[[Tree], Experiment]) -> Tree:
        kind = "bidaf" if _suit_spans(story for _, story in files["train"]) else "memory_network"
        return {
            "model": {"kind": kind},
            "text": {"max_characters": 100_000, "max_tokens": 1_000},
        }

    def data_defaults(self, data: LabelData, experiment: Experiment) -> Tree:
        return _planned(data, experiment)

    def time_limited_defaults(
        self, data: LabelData, experiment: Experiment, pace: Throughput, is_named: bool = False
    ) -> Tree:
        return merge(_planned(data, experiment, pace), {"training": {"validation_items": pace.validation_items}})

    def reasons(self, data: LabelData, experiment: Experiment) -> Mapping[str, str]:
        if not _has_spans(experiment):
            return {}
        why = "because every answer is a part of its passage"
        other = "otherwise, to choose from the answers of the training data: --preset memory_network"
        return {"model": f"chosen: a {experiment.model.kind}, {why}; {other}"}

    def write_prepared(self, files: Mapping[str, StoryFile], experiment: Experiment, folder: Path) -> None:
        file, config, has_spans = files["train"], experiment.text, _has_spans(experiment)
        read = [*answered_stories(file, in_facts=has_spans, keeps_impossible=has_spans)]
        stories = distinct_stories(read)
        if len(stories) < MIN_PAIRS:
            number = counted(len(stories), "story", "stories")
            raise DataError(f"{file.path}: {number}; training needs at least {MIN_PAIRS}")
        split = Split(len(stories), "dev" in files, "test" in files)
        parts: dict[str, list[Story]] = {"train": [], "dev": [], "test": []}
        for story in stories:
            parts[split(story_pair(story))].append(story)
        for name in ("dev", "test"):
            if name in files:
                parts[name] = [*answered_stories(files[name], keeps_impossible=has_spans)]
        has_own_validation = bool(parts["dev"])
        parts["dev"] = parts["dev"] or parts["train"]
        labels = [] if has_spans else kept_labels(folder) or _labels(file, parts["train"])
        if not has_spans:
            check_labels((story.answer for story in parts["train"]), labels, str(file.path))
        named_labels = f"{counted(len(labels), 'answer')}: {listed(labels)}"
        named = _about_spans(parts["train"]) if has_spans else named_labels
        report = [
            *(part.describe() for part in files.values()),
            *(note for part in files.values() for note in part.notes),
            f"{len(stories):,} of {len(read):,} stories kept, without repeated ones",
            *([] if has_own_validation else [on_training("stories")]),
            f"{len(parts['train']):,} stories for training, {len(parts['dev']):,} for validation, "
            f"{len(parts['test']):,} for testing; {named}",
        ]
        texts = chain.from_iterable((story.question, *story.facts) for story in parts["train"])
        encoded = (
            partial(_encoded_spans, file, parts["train"], config, report)
            if has_spans
            else partial(_encoded, parts["train"], labels, config)
        )
        sets = {name: [asdict(story) for story in parts[name]] for name in ("dev", "test")}
        facts = {"report": report, IMPOSSIBLE: _are_some_impossible(parts["train"]), **sets}
        lines = [*islice(texts, TOKENIZER_LINES)]
        store_items(folder, self.prepared_path, lines, config, len(stories), labels, encoded, facts)

    def items(self, stored: Any) -> Stories:
        try:
            return Stories(tuple(map(story_of, stored)))
        except (DataError, AttributeError) as error:
            raise FileRefused(str(error)) from None

    def encode(self, items: Any, tokenizer: Tokenizer, experiment: Experiment) -> list[NDArray[np.int64]]:
        config = experiment.text
        if _has_spans(experiment):
            return [encode_passage(tokenizer, story, config).ids for story in items.stories]
        return [encode_story(tokenizer, story, config)[0] for story in items.stories]

    def targets(self, items: Any, data: LabelData, experiment: Experiment) -> list[list[int]]:
        if not _has_spans(experiment):
            return super().targets(items, data, experiment)
        tokenizer = data.tokenizer
        passages = ((encode_passage(tokenizer, story, experiment.text), story) for story in items.stories)
        return [[*(passage.locate(story, tokenizer) or ())] for passage, story in passages]

    def reader(self, items: Any, data: LabelData, experiment: Experiment) -> Reader:
        if not _has_spans(experiment):
            return super().reader(items, data, experiment)
        passages = [encode_passage(data.tokenizer, story, experiment.text) for story in items.stories]
        shift = 0.0 if data.facts.get(IMPOSSIBLE) is True else None
        return lambda log_probs: [
            best_answers(passage, own, 1, shift)[0].text for passage, own in zip(passages, log_probs, strict=True)
        ]

    def finish(self, folder: Path, data: LabelData, experiment: Experiment) -> None:
        opened = open_folder(folder)
        needs_shift = _has_spans(experiment) and data.facts.get(IMPOSSIBLE) and NO_ANSWER_SHIFT not in opened.facts
        if not needs_shift or not isinstance(data.dev, Stories):
            return
        stories = data.dev.stories
        passages = [encode_passage(data.tokenizer, story, experiment.text) for story in stories]
        model = self._classifier(load_model(opened, data.sizes))
        log_probs, *_ = run_labels(label_run(model), PassageArrays([passage.ids for passage in passages]))
        log_odds, answered, unanswered = list[float](), list[float](), list[float]()
        for passage, own, story in zip(passages, log_probs, stories, strict=True):
            best = best_answers(passage, own, 1)[0]
            log_odds.append(log(max(no_answer(own, 0.0)[0], LEAST)) - log(max(best.probability, LEAST)))
            answered.append(span_scores(best.text, story.answer)[1])
            unanswered.append(span_scores("", story.answer)[1])
        shift = choose_shift(log_odds, answered, unanswered)
        others = {key: value for key, value in opened.facts.items() if key not in ("format", "files")}
        commit(opened.path, {**others, NO_ANSWER_SHIFT: round(shift, 6)}, [*opened.facts["files"]])

    def scores(self, said: Sequence[str], gold: Sequence[str], experiment: Experiment) -> dict[str, float]:
        if not _has_spans(experiment):
            return super().scores(said, gold, experiment)
        report = score_spans(said, gold)
        return {"accuracy": report.exact_match, "f1": report.f1}


def _planned(data: LabelData, experiment: Experiment, pace: Throughput | None = None) -> Tree:
    """Settings of a training.

    Args:
        pace: measured speeds, in stories, and limit of time; None = not measured, and no limit.
    """
    training = experiment.training
    num_tokens = int(data.train.source.lengths.sum())
    plan = plan_landing(
        COURSE, len(data.train), num_tokens, training.max_steps, pace.num_units if pace else 0.0, pace=pace
    )
    return {"training": {"select_by": "accuracy", **plan.settings(LEARNING_RATE, training.is_limited)}}


def _suit_spans(stories: Iterable[Story]) -> bool:
    """Tell whether answers are spans of the facts that cannot be chosen otherwise.

    That is, nearly all are in the facts, and attention over facts cannot help, because every story is one text, or the
    answers are too many to be labels.
    """
    answers: set[str] = set()
    num_stories, num_absent, is_divided = 0, 0, False
    for story in stories:
        if not story.answer:
            continue
        num_stories += 1
        num_absent += answer_place(story) is None
        answers.add(story.answer)
        is_divided = is_divided or len(story.facts) > 1
    if num_absent > MOST_WITHOUT * num_stories:
        return False
    return num_stories > 0 and (not is_divided or len(answers) > min(MOST_LABELS, num_stories // 2))


def _are_some_impossible(stories: Iterable[Story]) -> bool:
    return any(story.is_impossible for story in stories)


def _about_spans(stories: Sequence[Story]) -> str:
    number = sum(story.is_impossible for story in stories)
    questions = f"; the facts do not answer {counted(number, 'question')} for training" if number else ""
    return f"answers are spans of the facts{questions}"


def _has_spans(experiment: Experiment) -> bool:
    return getattr(experiment.model, "gives_spans", False)


def _labels(file: StoryFile, stories: list[Story]) -> list[str]:
    """Answers of stories, from which those of questions are chosen.

    Raises:
        DataError: there are too few or too many.
    """
    labels = sorted({story.answer for story in stories})
    if not 2 <= len(labels) <= min(MOST_LABELS, len(stories) // 2):
        raise DataError(
            f"{file.path}: {counted(len(labels), 'different answer')} in {len(stories):,} stories; the answers are "
            f"chosen from 2 to {MOST_LABELS:,} that occur twice or more on average; for answers that are spans of the "
            "facts take --preset bidaf"
        )
    return labels


def _encoded(
    stories: list[Story], labels: list[str], config: TextConfig, tokenizer: Tokenizer
) -> Iterator[tuple[list[int], list[int]]]:
    numbers = {label: number for number, label in enumerate(labels)}
    for story in stories:
        yield encode_story(tokenizer, story, config)[0].tolist(), [numbers[story.answer]]


def _encoded_spans(
    file: StoryFile, stories: list[Story], config: TextConfig, report: list[str], tokenizer: Tokenizer
) -> Iterator[tuple[list[int], list[int]]]:
    """Passages, and the first and the last position of each answer; those cut before their answers are only reported.

    Raises:
        DataError: no passage has its answer within the limit of length.
    """
    number = 0
    for story in stories:
        passage = encode_passage(tokenizer, story, config)
        span = passage.locate(story, tokenizer)
        if span is not None:
            number += 1
            yield passage.ids.tolist(), [*span]
    if not number:
        raise DataError(
            f"{file.path}: every answer is beyond text.max_tokens = {config.max_tokens:,} tokens; set it higher"
        )
    if num_cut := len(stories) - number:
        cut = counted(num_cut, "story", "stories")
        report.append(f"{cut} for training left out, whose answers are beyond {config.max_tokens:,} tokens")
