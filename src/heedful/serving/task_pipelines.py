"""Pipelines of labels, vectors, captions and answers, with the arguments and results of Transformers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, final

import numpy as np

from heedful.errors import UsageError
from heedful.predictors.answerer import Answer, Answerer
from heedful.predictors.call_texts import checked_texts
from heedful.predictors.captioner import Captioner
from heedful.predictors.classifier import Classification, Classifier
from heedful.predictors.interface import Predictor
from heedful.text.sentences import split_sentences
from heedful.text.stories import Story

Result = dict[str, Any]


@final
class TaskPipeline:
    """Callable over texts, pictures or questions, as `transformers.pipeline` returns it.

    Example:
        >>> classify = heedful.pipeline("text-classification", "reviews.model")  # doctest: +SKIP
        >>> classify("A quiet room")  # doctest: +SKIP
        [{'label': 'good', 'score': 0.98}]
    """

    def __init__(self, task: str, model: Predictor, settings: Mapping[str, Any]) -> None:
        """Keep the settings of every call.

        Args:
            task: key of `PIPELINES`.
            model: model for this task.
            settings: arguments of `__call__`.

        Raises:
            UsageError: the model is for another task.
        """
        self.task: Final = task
        self.model: Final = model
        self._settings: Final = dict(settings)
        kind = PIPELINES[task].kind
        if not isinstance(model, kind):
            raise UsageError(f"pipeline {task!r}: a model for {model.folder.task}; it takes a {kind.__name__}")

    def __call__(self, inputs: Any = None, **settings: Any) -> Any:
        """Ask the model.

        Args:
            inputs: a text or a list of texts; for image-to-text paths, pictures or arrays; for question-answering a
                dictionary with question and context, or a list of such.
            settings: `top_k` of text-classification (None = all labels); question and context of question-answering,
                which stand for `inputs`.

        Returns:
            text-classification: a dictionary with label and score for each text, in a list; with `top_k`, for one text
            the list of its labels, for a list of texts a list of such lists. feature-extraction: [1, 1, size] of nested
            lists for each text. image-to-text: for each picture a list of one dictionary with generated_text.
            question-answering: for each question a dictionary with answer, score, and start and end in the context.

        Raises:
            UsageError: an argument is unknown, or an input is of another kind, such as None.
        """
        return PIPELINES[self.task].run(self.model, inputs, self._settings | settings)


def _classify(model: Any, inputs: str | Sequence[str], settings: dict[str, Any]) -> list[Any]:
    has_number, number = "top_k" in settings, settings.pop("top_k", 1)
    _refuse("text-classification", settings)
    results = [label_scores(one, number) for one in model.classify(texts_of_call("text-classification", inputs))]
    if has_number:
        return results[0] if isinstance(inputs, str) else results
    return [one[0] for one in results]


def texts_of_call(task: str, inputs: str | Iterable[str]) -> list[str]:
    """List the texts of a call.

    Args:
        task: name of the pipeline.
        inputs: a text or several.

    Raises:
        UsageError: an input is no text, such as None or NaN; the message has its index.
    """
    return [inputs] if isinstance(inputs, str) else checked_texts(inputs, f"pipeline {task!r}")


def label_scores(one: Classification, number: int | None) -> list[Result]:
    """List the most probable labels of a text.

    Args:
        number: largest number of labels; None = all.
    """
    return [{"label": label, "score": share} for label, share in [*one.probabilities.items()][:number]]


def _extract(model: Any, inputs: str | Sequence[str], settings: dict[str, Any]) -> list[Any]:
    is_tensor = settings.pop("return_tensors", False)
    _refuse("feature-extraction", settings)
    vectors = model.encode(texts_of_call("feature-extraction", inputs))
    nested: list[Any] = [np.asarray(each)[None, None] if is_tensor else [[each.tolist()]] for each in vectors]
    return nested[0] if isinstance(inputs, str) else nested


def _describe(model: Any, inputs: Any, settings: dict[str, Any]) -> list[Any]:
    _refuse("image-to-text", settings)
    is_one = not isinstance(inputs, list | tuple)
    captions = model.caption([inputs] if is_one else list(inputs))
    for caption in captions:
        if caption.error:
            raise UsageError(f"pipeline 'image-to-text': {caption.error}")
    results = [[{"generated_text": caption.text}] for caption in captions]
    return results[0] if is_one else results


def _answer(model: Any, inputs: Any, settings: dict[str, Any]) -> Any:
    question, context = settings.pop("question", None), settings.pop("context", None)
    _refuse("question-answering", settings)
    questions: Any = {"question": question, "context": context} if inputs is None else inputs
    expected = "give question and context, both texts"
    if isinstance(questions, str) or not isinstance(questions, Iterable):
        raise UsageError(f"pipeline 'question-answering': got {questions!r:.40}; {expected}")
    rows: list[Any] = [questions] if isinstance(questions, Mapping) else [*questions]
    for index, row in enumerate(rows):
        where = "" if isinstance(questions, Mapping) else f"item {index}: "
        if not isinstance(row, Mapping):
            raise UsageError(f"pipeline 'question-answering': {where}got {row!r:.40}; {expected}")
        for name in ("question", "context"):
            if not isinstance(row.get(name), str):
                wrong = f"{name!r} is {row[name]!r:.40}" if row.get(name) is not None else f"no {name!r}"
                raise UsageError(f"pipeline 'question-answering': {where}{wrong}; {expected}")
    answers = model.answer([story_about(model, row["question"], row["context"]) for row in rows])
    results = [placed_answers(answer, row["context"])[0] for answer, row in zip(answers, rows, strict=True)]
    return results[0] if isinstance(questions, Mapping) else results


def story_about(model: Answerer, question: str, context: str) -> Story:
    """Make a story of a context: one fact where answers are spans, and else a fact for each sentence."""
    facts = [context] if not model.labels else split_sentences(context)
    return Story(tuple(fact.strip() for fact in facts if fact.strip()), question)


def placed_answers(answer: Answer, context: str, number: int = 1) -> list[Result]:
    """Place the most probable answers in the context.

    Args:
        number: largest number of answers.

    Returns:
        The answers, the most probable first, with start and end; 0 and 0 for one that is not a part of the context.
    """
    near = 0
    if answer.span is not None:
        # The passage is the context as the tokenizer normalizes it, which may be shorter or longer.
        near = max(0, answer.span.start + min(0, len(context) - len(answer.span.passage)))
    results: list[Result] = []
    for text, share in [*({answer.answer: answer.probability} | answer.probabilities).items()][:number]:
        offset = context.find(text, near if text == answer.answer else 0) if text else -1
        offset = context.find(text) if offset < 0 and text else offset
        start, end = (offset, offset + len(text)) if offset >= 0 else (0, 0)
        results.append({"score": share, "start": start, "end": end, "answer": text})
    return results


def _refuse(task: str, settings: Mapping[str, Any]) -> None:
    """Refuse arguments that are left.

    Raises:
        UsageError: there are some besides those that change nothing here.
    """
    if unknown := settings.keys() - {"batch_size", "truncation", "padding", "max_new_tokens"}:
        raise UsageError(f"pipeline {task!r}: unknown argument {', '.join(sorted(unknown))}")


class _Kind(NamedTuple):
    """Class of the models of a pipeline, and what it does with an input."""

    kind: type[Predictor]
    run: Callable[[Any, Any, dict[str, Any]], Any]


PIPELINES: Final[Mapping[str, _Kind]] = {
    "text-classification": _Kind(Classifier, _classify),
    "sentiment-analysis": _Kind(Classifier, _classify),
    "feature-extraction": _Kind(Classifier, _extract),
    "image-to-text": _Kind(Captioner, _describe),
    "question-answering": _Kind(Answerer, _answer),
}
"""Pipelines by their names in Transformers."""
