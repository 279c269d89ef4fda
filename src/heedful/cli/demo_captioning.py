"""Demonstration of captioning: generated scenes of shapes, and sentences about them."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heedful.cli.folder_names import beside
from heedful.cli.messages import Messages
from heedful.errors import needed_for

if TYPE_CHECKING:
    from heedful.predictors.captioner import Captioner
    from heedful.synthetic.scenes import Scene

NUM_SCENES: Final = 4_000
NUM_VALIDATION: Final = 200
NUM_HELD_OUT: Final = 500
NUM_SHOWN: Final = 3
BOX_WEIGHT: Final = 3
"""Weight of the loss that teaches attention the places of words."""
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
    from heedful.cli.demo_files import write_examples
    from heedful.cli.train import ending, train_and_watch
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.table import load
    from heedful.runs.finish import export_engines
    from heedful.runs.request import TrainRequest, merged_settings
    from heedful.synthetic.scenes import generate_scenes

    out = out or Path("scenes.model")
    messages.say(f"drawing {NUM_SCENES:,} scenes of a shape")
    numbers = {"train": NUM_SCENES, "validation": NUM_VALIDATION, "test": NUM_HELD_OUT}
    parts = {name: [*generate_scenes(number, seed, 1, name)] for name, number in numbers.items()}
    texts = {
        f"scenes-{name}.tsv": "".join(f"{name}/{index}.png\t{scene.text}\n" for index, scene in enumerate(scenes))
        for name, scenes in parts.items()
    }
    texts["scenes-boxes.tsv"] = "".join(_boxed(index, scene) for index, scene in enumerate(parts["train"]))
    data, dev, _, boxes = write_examples(out, texts, "scenes")
    for name, scenes in parts.items():
        _write_pictures(data.parent / name, scenes)
    limits = (f"training.seed={seed}", *([f"training.max_minutes={minutes}"] if minutes else []))
    taught = {"training.links": str(boxes), "training.alignment_weight": BOX_WEIGHT}
    settings = merged_settings(overrides=(*SETTINGS, *limits), options=taught)
    request = TrainRequest(data=(data,), out=out, dev=(dev,), task="captioning", settings=settings, device=device)
    info, outcome = train_and_watch(request, messages)
    print(ending(info, outcome))
    captioner = load(out, device, kind=Captioner)
    pictures = [data.parent / "test" / f"{index}.png" for index in range(len(parts["test"]))]
    captions = captioner.caption(pictures)
    num_right = sum(caption.text == scene.text for caption, scene in zip(captions, parts["test"], strict=True))
    print(f"\n{100.0 * num_right / len(captions):.1f} % of {len(captions):,} other scenes are described exactly\n")
    for caption, scene in zip(captions[:NUM_SHOWN], parts["test"], strict=False):
        note = "" if caption.text == scene.text else f" (should be: {scene.text})"
        print(f"  {Path(caption.image).name}  {caption.text}{note}")
    print(_drawn(captioner, pictures[0], out, messages))
    export_engines(info, messages.say, messages.warn)
    print(f"\nmodel: {out}\nnext:  heedful caption {shlex.quote(str(out))} {shlex.quote(str(pictures[1]))}")


def _boxed(index: int, scene: "Scene") -> str:
    """Line of a file of boxes."""
    boxes = (f"{word}:{box.left},{box.top},{box.right},{box.bottom}" for word, box in scene.boxes.items())
    return f"train/{index}.png\t{scene.text}\t{' '.join(boxes)}\n"


def _write_pictures(folder: Path, scenes: "list[Scene]") -> None:
    """Write the pictures, also over those that a stopped demonstration or one of another seed has left."""
    with needed_for("drawing scenes"):
        from PIL import Image
    folder.mkdir(exist_ok=True)
    for index, scene in enumerate(scenes):
        Image.fromarray(scene.pixels).save(folder / f"{index}.png")


def _drawn(captioner: "Captioner", picture: Path, out: Path, messages: Messages) -> str:
    """Draw the attention of a caption over its picture."""
    from heedful.inspection.picture_plot import save_attention_over_image

    (caption,) = captioner.caption([picture], attention=True)
    if caption.attention is None:
        return ""
    path = beside(out, "-attention.png")
    note = save_attention_over_image(path, caption.image, caption.pieces, caption.attention, caption.grid)
    if note:
        messages.say(note)
    return f"\nwhere the model looked for each word of the first: {path}"
