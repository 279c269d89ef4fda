"""Choice of stored weights: the fewest bits with which a model loses next to nothing on pairs that it did not learn."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from heedful.data.prepare import EvaluationSet
from heedful.engines.engine import decode_sorted
from heedful.engines.onnx import onnx_backend
from heedful.evaluation.evaluate import evaluate
from heedful.export.archive import GRAPHS
from heedful.export.stored_weights import KINDS, WeightKind, stored
from heedful.predictors.translation import decoded_texts
from heedful.predictors.translator import Translator
from heedful.search.inputs import TokenArrays
from heedful.text.encoding import encode_source

MOST_LOSS: Final = 0.2
"""Points of the metric, such as BLEU or percent of exact matches, that fewer bits may cost."""
MOST_ITEMS: Final = 1000


def stored_scores(translator: Translator, engine: Path, items: EvaluationSet) -> dict[WeightKind, float]:
    """Score a model with its weights stored in each kind.

    Args:
        engine: folder of the model's graphs, with weights of 32 bits.
        items: pairs, of which at most `MOST_ITEMS`, evenly spaced, are translated, by the model's own search.

    Returns:
        Scores of the first of the translator's metrics.
    """
    chosen = items[:: max(1, -(-len(items) // MOST_ITEMS))]
    sources = TokenArrays(
        [encode_source(translator.source_tokenizer, one, translator.text)[0] for one in chosen.sources]
    )
    scores: dict[WeightKind, float] = {}
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "onnx"
            shutil.copytree(engine, folder)
            for graph in GRAPHS:
                (folder / graph).write_bytes(stored((engine / graph).read_bytes(), kind))
            backend = onnx_backend("onnx", folder, translator.text.max_tokens)
            decoded = decode_sorted(backend, sources, translator.search)
            outputs = [decoded_texts(translator.target_tokenizer, one)[0] for one in decoded]
        report = evaluate(outputs, chosen.references, chosen.sources, metrics=translator.metrics[:1], num_resamples=1)
        scores[kind] = report.results[0].score
    return scores


def smallest(scores: Mapping[WeightKind, float]) -> WeightKind:
    """Choose the smallest kind that loses at most `MOST_LOSS` points.

    Args:
        scores: from `stored_scores`; more is better.

    Example:
        >>> smallest({"int8": 30.9, "float16": 31.2, "float32": 31.2})
        'float16'
    """
    return next(kind for kind in KINDS if scores["float32"] - scores[kind] <= MOST_LOSS)
