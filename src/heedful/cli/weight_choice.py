"""Choice of stored weights: the fewest bits with which a model loses next to nothing on items that it did not learn."""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from heedful.cli.messages import Messages
from heedful.engines.exported import FOLDER, MANIFEST, Exported, commit_engine
from heedful.engines.folder import open_folder
from heedful.errors import HeedfulError, UsageError
from heedful.evaluation.evaluate import evaluate
from heedful.export.stored_weights import KINDS, WeightKind, stored
from heedful.predictors.classifier import Classifier
from heedful.predictors.interface import Items, Predictor, spaced
from heedful.predictors.label_predictor import LabelPredictor
from heedful.predictors.table import load

MOST_LOSS: Final = 0.2
"""Points of the metric, such as BLEU or percent of exact matches, that fewer bits may cost."""
MOST_ITEMS: Final = 1000
"""Number of items of a file that decide, evenly spaced."""
MOST_OWN: Final = 300
"""Number of items that decide without a file, so that an export takes seconds."""
FEWEST_OWN: Final = 100
"""Number of items without a file below which they decide nothing."""


@final
@dataclass(frozen=True)
class WeightChoice:
    """Scores of a model with its weights stored in each kind."""

    metric: str
    scores: Mapping[WeightKind, float]
    is_loss: bool = False
    """Whether less is better."""

    @property
    def kind(self) -> WeightKind:
        """The smallest kind that loses at most `MOST_LOSS` points.

        Example:
            >>> WeightChoice("bleu", {"int8": 30.9, "float16": 31.2, "float32": 31.2}).kind
            'float16'
        """
        sign = -1 if self.is_loss else 1
        return next(kind for kind in KINDS if sign * (self.scores["float32"] - self.scores[kind]) <= MOST_LOSS)

    def __str__(self) -> str:
        listed = ", ".join(f"{kind} {score:.2f}" for kind, score in self.scores.items())
        return f"{listed} {self.metric}; taken: {self.kind}"


def choose_weights(predictor: Predictor, engine: Exported, dev: Path | None, messages: Messages) -> WeightKind:
    """Choose how weights are stored, by items of a file, or by those that the model was validated on.

    Args:
        engine: the model's graphs, with weights of 32 bits.
        dev: file of items; None = those of the model's folder, where it still has them.

    Returns:
        The smallest kind that loses next to nothing; float16 where no items decide.

    Raises:
        UsageError: a file is given, but the model gives numbers, which no metric of one output compares.
    """
    if isinstance(predictor, LabelPredictor) and predictor.text.labels == "number":
        if dev is not None:
            raise UsageError("export: --dev is not for models that give numbers; name the --weights")
        return "float16"
    items = predictor.read_items((dev,), (1, 2)) if dev else _own_validation(predictor)
    if items is None:
        messages.say("weights in 16 bits; --dev FILE tells whether 8 bits lose nothing")
        return "float16"
    chosen = spaced(items, MOST_ITEMS if dev else MOST_OWN)
    choice = measured_weights(predictor, engine, chosen)
    messages.say(f"weights by {len(chosen):,} items {f'of {dev}' if dev else 'for validation'}: {choice}")
    return choice.kind


def measured_weights(predictor: Predictor, engine: Exported, items: Items) -> WeightChoice:
    """Score a model with its weights stored in each kind, by the first of its metrics.

    Args:
        engine: as for `choose_weights`.
        items: items of its task.
    """
    (key, *_), original = predictor.metrics, predictor.folder.path
    scores: dict[WeightKind, float] = {}
    is_loss = False
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / original.name
        shutil.copytree(original, copy, ignore=shutil.ignore_patterns("run", FOLDER))
        (copy / FOLDER).mkdir()
        folder = open_folder(copy)
        for kind in KINDS:
            graphs = copy / FOLDER / kind
            shutil.copytree(engine.path, graphs, ignore=shutil.ignore_patterns(MANIFEST))
            for graph in graphs.glob("*.onnx"):
                graph.write_bytes(stored(graph.read_bytes(), kind))
            commit_engine(folder, "onnx", graphs, engine.facts, engine.parity)
            outputs = load(copy, engine="onnx").predict(items.sources)
            report = evaluate(outputs, items.references, items.sources, metrics=[key], num_resamples=1)
            scores[kind], is_loss = report.results[0].score, not report.results[0].metric.higher_is_better
    return WeightChoice(key, scores, is_loss)


def _own_validation(predictor: Predictor) -> Items | None:
    """Items that a model was validated on; None where its folder has too few, or PyTorch is not installed."""
    if isinstance(predictor, Classifier) and predictor.ngrams is not None:
        return None  # its n-grams were learned from these items too
    folder = predictor.folder
    try:
        from heedful.tasks.table import find_task

        items = find_task(folder.task).own_validation(folder.path)
    except (HeedfulError, ImportError, OSError, ValueError, KeyError, TypeError):
        return None
    return items if len(items) >= FEWEST_OWN else None
