"""Demonstration of captioning: generated scenes of shapes, and sentences about them."""

from pathlib import Path
from typing import Final

from heedful.cli.demo_pictures import PictureDemo, boxed
from heedful.cli.messages import Messages

NUM_SCENES: Final = 4_000
NUM_VALIDATION: Final = 200
NUM_HELD_OUT: Final = 500
SETTINGS: Final = (
    "model.annotation_size=64",
    "model.embedding_size=64",
    "model.hidden_size=128",
    "model.attention.hidden_size=64",
    "model.dropout=0",
    "model.doubly_stochastic=0",
    "training.label_smoothing=0",
    "training.batch_tokens=448",
    "training.max_steps=350",
    "training.validate_every=50",
    "training.patience=100",
    "training.select_by=exact_match",
    "training.precision=float32",
    "training.average=0",
    "training.optimizer.kind=muon",
    "training.optimizer.learning_rate=0.01",
    "training.optimizer.schedule.kind=linear",
)
"""Settings that learn this task in a minute on two cores: taught the places of words, it needs half of the steps."""


def demonstrate(out: Path | None, minutes: float, seed: int, device: str, messages: Messages) -> None:
    """Draw scenes, train show, attend and tell, and draw its attention over a scene.

    Args:
        out: the model's folder; None = `scenes.model`.
        minutes: longest training time; 0 = no limit.
        seed: seed of data, weights and order.
        device: PyTorch device.
    """
    from heedful.synthetic.scenes import generate_scenes

    messages.say(f"drawing {NUM_SCENES:,} scenes of a shape")
    numbers = {"train": NUM_SCENES, "validation": NUM_VALIDATION, "test": NUM_HELD_OUT}
    parts = {part: [*generate_scenes(number, seed, 1, part)] for part, number in numbers.items()}
    PictureDemo(
        name="scenes",
        noun="scenes",
        success="are described exactly",
        unit="word",
        parts=parts,
        boxes="".join(boxed(index, scene.text, scene.boxes) for index, scene in enumerate(parts["train"])),
        settings=SETTINGS,
    ).run(out, minutes, seed, device, messages)
