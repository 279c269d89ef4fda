"""Views of the page for models that do not translate: labels with words, answers with facts, captions with regions."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import Field

from heedful.config.base import Config, validate
from heedful.errors import UsageError
from heedful.predictors.answerer import Answerer
from heedful.predictors.captioner import Captioner
from heedful.predictors.classifier import Classifier
from heedful.predictors.interface import Predictor
from heedful.predictors.word_effects import FAITHFUL, word_effects
from heedful.text.stories import Story
from heedful.text.token_labels import readable_labels

MOST_CHARACTERS: Final = 5000
MOST_LABELS: Final = 50
"""Largest number of labels, or of answers, whose probabilities a view lists."""
NUM_CAPTIONS: Final = 5

Cancelled = Callable[[], bool]


class TextView(Config):
    """Request for the label of a text."""

    text: str = Field(max_length=MOST_CHARACTERS)
    model: str = Field(default="", max_length=300)


class StoryView(Config):
    """Request for the answer to a question."""

    text: str = Field(max_length=MOST_CHARACTERS)
    """Facts, one a line."""
    question: str = Field(max_length=MOST_CHARACTERS)
    model: str = Field(default="", max_length=300)


def classification_view(classifier: Classifier, body: Mapping[str, Any], cancelled: Cancelled | None) -> dict[str, Any]:
    """Classify a text, and leave each of its words out to see what the model then says.

    Args:
        body: fields of `TextView`.

    Returns:
        Label, probabilities, and "sentences": lists of words, each with its weight and the effect of leaving it out.
    """
    text = validate(TextView, body, "view").text
    explained = word_effects(classifier, text, cancelled)
    result = explained.result
    return {
        "task": "classification",
        "labelKind": classifier.text.labels,
        "label": result.label,
        "labels": list(result.labels),
        "probability": result.probability,
        "probabilities": [*result.probabilities.items()][:MOST_LABELS],
        "sentences": [
            [[one.word, round(one.weight, 6), one.effect] for one in sentence] for sentence in explained.sentences
        ],
        "hasAttention": result.attention is not None,
        "correlation": explained.correlation,
        "isFaithful": explained.correlation is not None and explained.correlation >= FAITHFUL,
        "wasCut": result.was_cut,
    }


def answer_view(answerer: Answerer, body: Mapping[str, Any], cancelled: Cancelled | None = None) -> dict[str, Any]:
    """Answer a question about facts.

    Args:
        body: fields of `StoryView`.

    Returns:
        Answer, probabilities, facts with their weights by step; and the passage with its span, where answers are spans.
    """
    wanted = validate(StoryView, body, "view")
    facts = tuple(line.strip() for line in wanted.text.split("\n") if line.strip())
    (answer,) = answerer.answer([Story(facts, wanted.question)])
    return {
        "task": "answering",
        "answer": answer.answer,
        "probability": answer.probability,
        "probabilities": [*answer.probabilities.items()][:MOST_LABELS],
        "facts": list(facts),
        "steps": answer.steps,
        "weights": [] if answer.weights is None else answer.weights.round(6).tolist(),
        "span": answer.span and answer.span.to_dict() | {"places": [list(ends) for ends in answer.span.tokens]},
        "wasCut": answer.was_cut,
    }


def caption_view(captioner: Captioner, body: Mapping[str, Any], cancelled: Cancelled | None) -> dict[str, Any]:
    """Describe a picture.

    Args:
        body: "picture", the content of its file; and "model".

    Returns:
        Captions, the words of the best one, and for each word the weights of the regions of the picture.

    Raises:
        UsageError: there is no picture, or the model reads features in place of pictures.
        DataError: the picture cannot be read.
    """
    picture = body.get("picture")
    if not isinstance(picture, bytes) or not picture or body.keys() - {"picture", "model"}:
        raise UsageError("view: expected a picture, and nothing else")
    if captioner.images.kind == "features":
        raise UsageError("this model reads arrays of features, which the page does not take; use heedful caption")
    beam = max(captioner.search.beam, NUM_CAPTIONS)
    (caption,) = captioner.caption([picture], beam=beam, nbest=NUM_CAPTIONS, attention=True, cancelled=cancelled)
    return {
        "task": "captioning",
        "text": caption.text,
        "alternatives": [[one.text, one.log_prob, one.score] for one in caption.alternatives],
        "pieces": readable_labels(caption.pieces),
        "weights": [] if caption.attention is None else caption.attention.round(6).tolist(),
        "grid": list(caption.grid),
        "size": [captioner.images.height, captioner.images.width],
    }


VIEWS: Final[Mapping[type[Predictor], Callable[[Any, Mapping[str, Any], Cancelled | None], dict[str, Any]]]] = {
    Classifier: classification_view,
    Answerer: answer_view,
    Captioner: caption_view,
}
"""Views of the page by class of the model."""
