"""What a model of a comparison is measured by: its outputs, how it reads the references, and figures beside them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import torch

from heedful.comparison.run_result import Items, RunResult
from heedful.config import validate
from heedful.data.prepare import EvaluationSet
from heedful.evaluation.interface import Setting, corpus_score
from heedful.evaluation.language import choose_tokenizer
from heedful.evaluation.metrics.table import build_metric
from heedful.predictors.perplexity import perplexity
from heedful.predictors.translation import Translation
from heedful.predictors.translator import Translator, load_translator
from heedful.runtime.engine import DEFAULT_BATCH_TOKENS
from heedful.runtime.folder import CONFIG, digest
from heedful.version import __version__

Measure = Callable[[Translator, EvaluationSet, Sequence[Translation]], float | None]
"""From a model, what it was measured on and its outputs to a figure; None where the model has none."""


def bleu_before_unknown(translator: Translator, items: EvaluationSet, outputs: Sequence[Translation]) -> float | None:
    """Score outputs as they were before their unknown words were replaced.

    Args:
        translator: the model.
        items: sources and references.
        outputs: of the model's own search.

    Returns:
        BLEU; None where this model's search replaces no unknown words.
    """
    if not translator.search.replace_unknown:
        return None
    every = (text for texts in items.references for text in texts)
    metric = build_metric("bleu", Setting(choose_tokenizer(translator.target_language, every).tokenizer))
    texts = [output.unreplaced or output.text for output in outputs]
    return corpus_score(metric, metric.statistics(texts, items.references))


MEASURES: Final[dict[str, Measure]] = {"bleu_before_unknown": bleu_before_unknown}
"""What else is measured of each run, by the key of its column in `heedful.comparison.summary.COLUMNS`."""


def measure(folder: Path, items: Items, training: Mapping[str, object], ensemble: Sequence[Path] = ()) -> RunResult:
    """Translate the items with the kept model, or an ensemble of them, and read their references with it.

    Args:
        folder: of the model.
        items: what all rows are measured on.
        training: the fields of a finding that training gave.
        ensemble: folders of models that decode together with it.

    Returns:
        All that was found.
    """
    translator = load_translator(folder, str(training["device"]), ensemble=ensemble)
    measured = EvaluationSet([*items.sources], [[*texts] for texts in items.references])
    outputs = list(translator.stream(items.sources, translator.search, batch_tokens=DEFAULT_BATCH_TOKENS))
    read = perplexity(translator, measured)
    settings = [(each / CONFIG).read_text(encoding="utf-8") for each in (folder, *ensemble)]
    names = (str(translator.folder.facts[f"{side}_tokenizer"]) for side in ("source", "target"))
    found = {
        **training,
        "settings": "\n".join(settings),
        "tokenizers": [digest(folder / name) for name in names],
        "versions": f"heedful {__version__}, PyTorch {torch.__version__}, threads {torch.get_num_threads()}",
        "outputs": [output.text for output in outputs],
        "perplexity": read.per_token,
        "bits_per_character": read.bits_per_character,
        "measures": {
            key: figure
            for key, figure_of in MEASURES.items()
            if (figure := figure_of(translator, measured, outputs)) is not None
        },
    }
    return validate(RunResult, found)
