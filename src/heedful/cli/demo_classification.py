"""Demonstration of classification: reviews of several sentences, of which few words tell the label."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heedful.cli.folder_names import beside
from heedful.cli.messages import Messages

if TYPE_CHECKING:
    from heedful.predictors.classifier import Classification

NUM_REVIEWS: Final = 6_000
NUM_VALIDATION: Final = 300
NUM_HELD_OUT: Final = 1_000
NUM_SHOWN: Final = 3
SETTINGS: Final = (
    "model.embedding_size=32",
    "model.hidden_size=16",
    "training.max_steps=300",
    "training.validate_every=50",
    "training.patience=100",
    "training.precision=float32",
    "training.optimizer.learning_rate=0.005",
)
"""Settings that learn this task well within a minute on two cores."""


def demonstrate(out: Path | None, minutes: float, seed: int, device: str, messages: Messages) -> None:
    """Generate reviews, train a hierarchical attention network, and show the weights of words.

    Args:
        out: the model's folder; None = `reviews.model`.
        minutes: longest training time; 0 = no limit.
        seed: seed of data, weights and order.
        device: PyTorch device.
    """
    from rich.console import Console

    from heedful.cli.attention_text import weighted_text
    from heedful.cli.demo_files import write_examples
    from heedful.cli.train import train_and_watch
    from heedful.predictors.classifier import Classifier
    from heedful.predictors.table import load
    from heedful.runs.finish import ending, export_engines
    from heedful.runs.request import TrainRequest, merged_settings
    from heedful.synthetic.reviews import generate

    out = out or Path("reviews.model")
    messages.say(f"making {NUM_REVIEWS:,} reviews of hotels")
    rows = [*dict.fromkeys(generate(2 * (NUM_REVIEWS + NUM_VALIDATION + NUM_HELD_OUT), seed))]
    held_out = rows[NUM_REVIEWS + NUM_VALIDATION :][:NUM_HELD_OUT]
    texts = {
        name: "".join(f"{text}\t{label}\n" for text, label in part)
        for name, part in (
            ("reviews.tsv", rows[:NUM_REVIEWS]),
            ("reviews-validation.tsv", rows[NUM_REVIEWS : NUM_REVIEWS + NUM_VALIDATION]),
        )
    }
    data, dev = write_examples(out, texts, "reviews")
    limits = (f"training.seed={seed}", *([f"training.max_minutes={minutes}"] if minutes else []))
    request = TrainRequest(
        data=(data,),
        out=out,
        dev=(dev,),
        task="classification",
        preset="hierarchical",
        settings=merged_settings(overrides=(*SETTINGS, *limits)),
        device=device,
    )
    info, outcome = train_and_watch(request, messages)
    print(ending(info, outcome))
    classifier = load(out, device, kind=Classifier)
    results = classifier.classify([text for text, _ in held_out])
    num_right = sum(result.label == label for result, (_, label) in zip(results, held_out, strict=True))
    print(f"\n{100.0 * num_right / len(held_out):.1f} % of {len(held_out):,} other reviews are labelled right\n")
    console = Console(color_system="auto" if sys.stdout.isatty() else None)
    for result in results[:NUM_SHOWN]:
        print(f"  {result.label}\n{weighted_text(result, console)}")
    print(_drawn(results[0], out, messages))
    export_engines(info, messages.say, messages.warn)
    command = f"heedful classify {shlex.quote(str(out))} --show-attention"
    print(f"\nmodel: {out}\nnext:  {command} 'We stayed for two nights. What a charming view.'")


def _drawn(result: "Classification", out: Path, messages: Messages) -> str:
    """Draw the weights of the words, each sentence on lines of its own."""
    from heedful.inspection.text_plot import save_weighted_text
    from heedful.text.weighted_words import weighted_sentences

    if result.attention is None:
        return ""
    picture = beside(out, "-attention.png")
    sentences = weighted_sentences(result.pieces, result.attention.tolist(), result.text)
    note = save_weighted_text(picture, [*sentences], f"label: {result.label}")
    if note:
        messages.say(note)
    return f"weights of the words of the first review as a picture: {picture}"
