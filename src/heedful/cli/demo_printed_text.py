"""Demonstration of reading: generated pictures of digits, and the text that they show."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heedful.cli.folder_names import beside
from heedful.cli.messages import Messages
from heedful.errors import needed_for

if TYPE_CHECKING:
    from heedful.synthetic.printed_text import PrintedText

NUM_PICTURES: Final = 3_300
NUM_VALIDATION: Final = 200
NUM_HELD_OUT: Final = 500
NUM_SHOWN: Final = 3
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
    from heedful.cli.demo_files import write_examples
    from heedful.cli.train import ending, train_and_watch
    from heedful.inspection.picture_plot import save_attention_over_image
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.table import load
    from heedful.runs.finish import export_engines
    from heedful.runs.request import TrainRequest, merged_settings
    from heedful.synthetic.printed_text import generate_printed_texts

    out = out or Path("printed.model")
    messages.say(f"drawing {NUM_PICTURES:,} pictures of digits")
    numbers = {"train": NUM_PICTURES, "validation": NUM_VALIDATION, "test": NUM_HELD_OUT}
    parts = {name: [*generate_printed_texts(number, seed, WORD_SHARE, name)] for name, number in numbers.items()}
    texts = {
        f"printed-{name}.tsv": "".join(f"{name}/{index}.png\t{each.text}\n" for index, each in enumerate(pictures))
        for name, pictures in parts.items()
    }
    data, dev, _ = write_examples(out, texts, "pictures")
    for name, pictures in parts.items():
        _write(data.parent / name, pictures)
    limits = (f"training.seed={seed}", *([f"training.max_minutes={minutes}"] if minutes else []))
    settings = merged_settings(overrides=(*SETTINGS, *limits))
    request = TrainRequest(data=(data,), out=out, dev=(dev,), task="captioning", settings=settings, device=device)
    info, outcome = train_and_watch(request, messages)
    print(ending(info, outcome))
    captioner = load(out, device, kind=Captioner)
    paths = [data.parent / "test" / f"{index}.png" for index in range(len(parts["test"]))]
    captions = captioner.caption(paths)
    num_right = sum(caption.text == each.text for caption, each in zip(captions, parts["test"], strict=True))
    print(f"\n{100.0 * num_right / len(captions):.1f} % of {len(captions):,} other pictures are read exactly\n")
    for caption, each in zip(captions[:NUM_SHOWN], parts["test"], strict=False):
        note = "" if caption.text == each.text else f" (should be: {each.text})"
        print(f"  {Path(caption.image).name}  {caption.text}{note}")
    (caption,) = captioner.caption([paths[0]], attention=True)
    if caption.attention is not None:
        path = beside(out, "-attention.png")
        note = save_attention_over_image(path, caption.image, caption.pieces, caption.attention, caption.grid)
        if note:
            messages.say(note)
        print(f"\nwhere the model looked for each character of the first: {path}")
    export_engines(info, messages.say, messages.warn)
    print(f"\nmodel: {out}\nnext:  heedful caption {shlex.quote(str(out))} {shlex.quote(str(paths[1]))}")


def _write(folder: Path, pictures: "list[PrintedText]") -> None:
    """Write pictures, also over those that a stopped demonstration or one of another seed has left."""
    with needed_for("drawing text"):
        from PIL import Image
    folder.mkdir(exist_ok=True)
    for index, each in enumerate(pictures):
        Image.fromarray(each.pixels).save(folder / f"{index}.png")
