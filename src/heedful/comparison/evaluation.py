"""Evaluation of one run: outputs, and for translations reference perplexity and further figures."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import torch

from heedful.comparison.run_result import ComparedItems, RunResult
from heedful.config.base import validate
from heedful.data.prepare import EvaluationSet
from heedful.engines.engine import DEFAULT_BATCH_TOKENS
from heedful.engines.folder import CONFIG
from heedful.errors import HeedfulError
from heedful.evaluation.answers import AnswerReport, score_answers, score_spans
from heedful.evaluation.interface import Setting, corpus_score
from heedful.evaluation.label_sets import label_scores
from heedful.evaluation.language import choose_tokenizer
from heedful.evaluation.metrics.table import build_metric
from heedful.files.atomic_write import digest
from heedful.predictors.answerer import Answerer, story_of_line
from heedful.predictors.interface import Predictor
from heedful.predictors.label_predictor import LabelPredictor
from heedful.predictors.perplexity import perplexity
from heedful.predictors.table import load
from heedful.predictors.translation import Translation
from heedful.predictors.translator import Translator
from heedful.version import __version__

_MOST_DRAWN: Final = 2
"""Number of sources whose attention is drawn."""
Measure = Callable[[Translator, EvaluationSet, Sequence[Translation]], float | None]
"""Function that computes a figure of a model from the evaluation set and the outputs; None where it does not apply."""


def bleu_before_unknown(translator: Translator, items: EvaluationSet, outputs: Sequence[Translation]) -> float | None:
    """Return BLEU of the outputs before their unknown words were replaced.

    Args:
        outputs: the model's translations of the sources.

    Returns:
        BLEU; None where this model's search replaces no unknown words.
    """
    if not translator.search.replace_unknown:
        return None
    every = (text for texts in items.references for text in texts)
    metric = build_metric("bleu", Setting(choose_tokenizer(translator.target_language, every).tokenizer))
    texts = [output.unreplaced or output.text for output in outputs]
    return corpus_score(metric, metric.statistics(texts, items.references))


def attention_entropy(translator: Translator, items: EvaluationSet, outputs: Sequence[Translation]) -> float | None:
    """Compute the mean entropy of the attention weights over the source, in nats, by forced decoding of references.

    The first reference of each item counts. The weights are those that alignments are made from, normalised to sum to
    1; target tokens whose weights are all 0 are left out.

    Args:
        outputs: the model's translations of the sources.

    Returns:
        Mean entropy of a target token's weights; None where the model has no attention.
    """
    if not translator.model().alignment:
        return None
    pairs = [(source, texts[0]) for source, texts in zip(items.sources, items.references, strict=True)]
    total, number = 0.0, 0
    for scored in translator.scored_pairs(pairs, attention=True):
        weights = scored.attention
        if weights is None:
            continue
        sums = weights.sum(axis=-1, keepdims=True, dtype=np.float64)
        shares = weights[sums[:, 0] > 0] / sums[sums[:, 0] > 0]
        total -= float((shares * np.log(np.where(shares > 0, shares, 1.0))).sum())
        number += len(shares)
    return total / number if number else None


MEASURES: Final[dict[str, Measure]] = {
    "bleu_before_unknown": bleu_before_unknown,
    "attention_entropy": attention_entropy,
}
"""Further figures of each run, by the key of their column in `heedful.comparison.summary.COLUMNS`."""


def evaluate_run(
    folder: Path, items: ComparedItems, training: Mapping[str, object], ensemble: Sequence[Path] = ()
) -> RunResult:
    """Evaluate the selected model of a run, or an ensemble: predict the items' outputs and score their references.

    Args:
        folder: the model's folder.
        items: sources and references that all rows share.
        training: fields of `RunResult` that are known from training.
        ensemble: folders of further models that decode together with the first.
    """
    predictor = load(folder, str(training["device"]), "torch", ensemble)
    settings = [(each / CONFIG).read_text(encoding="utf-8") for each in (folder, *ensemble)]
    names = (str(name) for key, name in predictor.folder.facts.items() if key.endswith("tokenizer"))
    fields = {
        **training,
        "settings": "\n".join(settings),
        "tokenizers": [digest(folder / name) for name in names],
        "versions": f"heedful {__version__}, PyTorch {torch.__version__}, threads {torch.get_num_threads()}",
        **_outputs(predictor, items),
        "attention": () if ensemble else _drawn(predictor, items.sources[:_MOST_DRAWN]),
    }
    return validate(RunResult, fields)


def _outputs(predictor: Predictor, items: ComparedItems) -> dict[str, object]:
    """Outputs and figures of any task."""
    if isinstance(predictor, Translator):
        return _translated(predictor, items)
    return _answered(predictor, items) if isinstance(predictor, Answerer) else _predicted(predictor, items)


def _drawn(predictor: Predictor, sources: Sequence[str]) -> list[dict[str, str]]:
    """Attention of a model for sources, as `DrawnAttention`; none where it cannot be computed."""
    try:
        views = predictor.attention_views(sources)
    except (HeedfulError, OSError):  # a table is worth having without drawings
        return []
    return [
        {"title": view.title, "explanation": view.explanation, "html": html} for view in views if (html := view.draw())
    ]


def _translated(translator: Translator, items: ComparedItems) -> dict[str, object]:
    """Outputs and figures of translations."""
    measured = EvaluationSet([*items.sources], [[*texts] for texts in items.references])
    outputs = list(translator.stream(items.sources, translator.search, batch_tokens=DEFAULT_BATCH_TOKENS))
    reference_perplexity = perplexity(translator, measured)
    return {
        "outputs": [output.text for output in outputs],
        "perplexity": reference_perplexity.per_token,
        "bits_per_character": reference_perplexity.bits_per_character,
        "measures": {
            key: figure
            for key, figure_of in MEASURES.items()
            if (figure := figure_of(translator, measured, outputs)) is not None
        },
    }


def _answered(answerer: Answerer, items: ComparedItems) -> dict[str, object]:
    """Answers, their macro-F1 where they are labels, and the share of the supporting facts attended."""
    answers = [*answerer.stream(map(story_of_line, items.sources))]
    outputs, gold = [answer.answer for answer in answers], [texts[0] for texts in items.references]
    score = score_answers if answerer.labels else score_spans
    supporting = items.supporting or ((),) * len(answers)
    report = score(outputs, gold, supporting, [answer.weights for answer in answers])
    measures = {"macro_f1": report.answers.macro_f1} if isinstance(report, AnswerReport) else {}
    measures |= {} if report.attended is None else {"attended": report.attended}
    return {"outputs": outputs, "measures": measures}


def _predicted(predictor: Predictor, items: ComparedItems) -> dict[str, object]:
    """Outputs of any other task, and the macro-F1 of labels."""
    outputs = predictor.predict(items.sources)
    if not isinstance(predictor, LabelPredictor):
        return {"outputs": outputs}
    scores = label_scores(predictor.text.labels, outputs, [texts[0] for texts in items.references])
    return {"outputs": outputs, "measures": {key: scores[key] for key in ("macro_f1",) if key in scores}}
