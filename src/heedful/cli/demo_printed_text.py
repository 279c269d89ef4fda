"""Demonstration of reading: generated pictures of digits and words, and the text that they show."""

from pathlib import Path
from typing import Final

from heedful.cli.demo_pictures import PictureDemo, boxed
from heedful.cli.messages import Messages

NUM_PICTURES: Final = 10_000
NUM_VALIDATION: Final = 200
NUM_HELD_OUT: Final = 500
WORD_SHARE: Final = 0.5
"""Share of words; an eighth of them the model has never seen."""
SETTINGS: Final = (
    "images.region_height=32",
    "images.region_size=4",
    "model.embedding_size=64",
    "model.hidden_size=128",
    "model.attention.hidden_size=64",
    "model.num_row_layers=1",
    "model.transcription_weight=1",
    "model.dropout=0",
    "training.label_smoothing=0",
    "training.batch_tokens=250",
    "training.max_steps=2000",
    "training.validate_every=200",
    "training.precision=float32",
    "training.average=0",
    "training.optimizer.kind=muon",
    "training.optimizer.learning_rate=0.01",
    "training.optimizer.schedule.kind=linear",
)
"""Settings with which nine of ten pictures are read in five minutes of one core: regions are columns, which also spell
the text alone."""


def demonstrate(out: Path | None, minutes: float, seed: int, device: str, messages: Messages) -> None:
    """Draw texts, train a captioner to read them, and draw where it looks.

    Args:
        out: the model's folder; None = `printed.model`.
        minutes: longest training time; 0 = no limit.
        seed: seed of data, weights and order.
        device: PyTorch device.
    """
    from heedful.synthetic.printed_text import generate_printed_texts

    messages.say(f"drawing {NUM_PICTURES:,} pictures of digits and words")
    numbers = {"train": NUM_PICTURES, "validation": NUM_VALIDATION, "test": NUM_HELD_OUT}
    parts = {part: [*generate_printed_texts(number, seed, WORD_SHARE, part)] for part, number in numbers.items()}
    PictureDemo(
        name="printed",
        noun="pictures",
        success="are read exactly",
        unit="character",
        parts=parts,
        boxes="".join(boxed(index, " ".join(each.text), each.boxes) for index, each in enumerate(parts["train"])),
        settings=SETTINGS,
    ).run(out, minutes, seed, device, messages)
