"""Demonstration of reading: generated pictures of digits, and the text that they show."""

from pathlib import Path
from typing import Final

from heedful.cli.demo_pictures import PictureDemo
from heedful.cli.messages import Messages

NUM_PICTURES: Final = 3_300
NUM_VALIDATION: Final = 200
NUM_HELD_OUT: Final = 500
WORD_SHARE: Final = 0.0
"""Share of words: with a fifth of them, the model has not learned in 1,500 updates to look from letter to letter."""
SETTINGS: Final = ("training.max_steps=2200",)
"""Settings besides those that training chooses by itself: four minutes on two quiet cores."""


def demonstrate(out: Path | None, minutes: float, seed: int, device: str, messages: Messages) -> None:
    """Draw texts, train a captioner to read them, and draw where it looks.

    Args:
        out: the model's folder; None = `printed.model`.
        minutes: longest training time; 0 = no limit.
        seed: seed of data, weights and order.
        device: PyTorch device.
    """
    from heedful.synthetic.printed_text import generate_printed_texts

    messages.say(f"drawing {NUM_PICTURES:,} pictures of digits")
    numbers = {"train": NUM_PICTURES, "validation": NUM_VALIDATION, "test": NUM_HELD_OUT}
    PictureDemo(
        name="printed",
        noun="pictures",
        success="are read exactly",
        unit="character",
        parts={part: [*generate_printed_texts(number, seed, WORD_SHARE, part)] for part, number in numbers.items()},
        settings=SETTINGS,
    ).run(out, minutes, seed, device, messages)
