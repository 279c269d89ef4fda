"""Classify texts.

Texts are arguments, lines of a file, or lines of standard input; one line in, one line out: the label, a tab and its
probability. With --format jsonl, each line gives the probability of every label.

Examples:
  heedful classify reviews.model 'A quiet room with a view'
  heedful classify reviews.model -i reviews.txt -o labels.tsv
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from heedful.cli.lines import InputPath, LineFormat, OutputFormat, Texts, answer_lines, require_one
from heedful.cli.messages import Messages
from heedful.cli.options import Debug, Device, Engine, ModelPath, OutputPath, Quiet, Threads, use_threads

if TYPE_CHECKING:
    from heedful.predictors.classifier import Classification


def run(
    model: ModelPath,
    texts: Texts = None,
    source: InputPath = None,
    target: OutputPath = None,
    output_format: LineFormat = "text",
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Classify texts."""
    use_threads(threads)
    require_one(texts, source)
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.classifier import WINDOW_TEXTS, Classifier

    classifier = load_to_run(model, engine, device, kind=Classifier)

    def labels(window: list[str], first_index: int) -> Iterator[tuple[str, bool]]:
        for result in classifier.stream(window):
            yield _line(result, output_format) + "\n", result.was_cut

    answer_lines(labels, texts or (), source, target, Messages(quiet), WINDOW_TEXTS, classifier.text.max_tokens)


def _line(result: "Classification", output_format: OutputFormat) -> str:
    if output_format == "text":
        return f"{result.label}\t{result.probability:.4f}"
    facts = {
        "text": result.text,
        "label": result.label,
        "probabilities": result.probabilities,
        "was_cut": result.was_cut,
    }
    if result.attention is not None:
        facts |= {"pieces": result.pieces, "attention": [round(float(weight), 6) for weight in result.attention]}
    return json.dumps(facts, ensure_ascii=False)
