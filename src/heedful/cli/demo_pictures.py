"""Demonstrations of captioning: generated pictures with texts, a captioner that learns them, and where it looks."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from heedful.cli.folder_names import beside
from heedful.cli.messages import Messages
from heedful.config.base import Tree
from heedful.errors import needed_for

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from heedful.predictors.captioner import Captioner
    from heedful.synthetic.scenes import Box

NUM_SHOWN: Final = 3
BOX_WEIGHT: Final = 3
"""Weight of the loss that teaches attention the places of words."""


class Picture(Protocol):
    """Picture with the text that describes it."""

    @property
    def pixels(self) -> "NDArray[Any]":
        """Grey values [row, column], or [row, column, colour]."""
        ...

    @property
    def text(self) -> str:
        """The text."""
        ...


@final
@dataclass(frozen=True, kw_only=True)
class PictureDemo:
    """Pictures of a demonstration, and its words about them."""

    name: str
    """Name of the model folder and of the files, without endings."""
    noun: str
    """Pictures in general, such as "scenes"."""
    success: str
    """Words about pictures whose text is right, such as "are described exactly"."""
    unit: str
    """Unit of the texts that attention is drawn for, such as "word"."""
    parts: Mapping[str, Sequence[Picture]]
    """Pictures by part: "train", "validation" and "test"."""
    boxes: str = ""
    """Content of a file of boxes of words, for `training.links`; empty = none."""
    settings: Sequence[str] = ()
    """Settings of the training, such as "model.dropout=0"."""

    def run(self, out: Path | None, minutes: float, seed: int, device: str, messages: Messages) -> None:
        """Train a captioner, count the right texts of other pictures, and draw where the model looked.

        Args:
            out: the model's folder; None = named after the pictures.
            minutes: longest training time; 0 = no limit.
            seed: seed of weights and order.
            device: PyTorch device.
        """
        from heedful.cli.train import train_and_watch
        from heedful.predictors.captioner import Captioner
        from heedful.predictors.table import load
        from heedful.runs.finish import ending, export_engines
        from heedful.runs.request import TrainRequest

        out = out or Path(f"{self.name}.model")
        data, dev, settings = self._written(out, minutes, seed)
        request = TrainRequest(data=(data,), out=out, dev=(dev,), task="captioning", settings=settings, device=device)
        info, outcome = train_and_watch(request, messages)
        print(ending(info, outcome))
        captioner = load(out, device, kind=Captioner)
        paths = [data.parent / "test" / f"{index}.png" for index in range(len(self.parts["test"]))]
        self._show(captioner, paths)
        print(self._drawn(captioner, paths[0], out, messages))
        export_engines(info, messages.say, messages.warn)
        print(f"\nmodel: {out}\nnext:  heedful caption {shlex.quote(str(out))} {shlex.quote(str(paths[1]))}")

    def _written(self, out: Path, minutes: float, seed: int) -> tuple[Path, Path, Tree]:
        """Files of training and of validation, written into the run's folder, and the settings of the training."""
        from heedful.cli.demo_files import write_examples
        from heedful.runs.request import merged_settings

        texts = {
            f"{self.name}-{part}.tsv": "".join(
                f"{part}/{index}.png\t{each.text}\n" for index, each in enumerate(pictures)
            )
            for part, pictures in self.parts.items()
        }
        texts |= {f"{self.name}-boxes.tsv": self.boxes} if self.boxes else {}
        data, dev, _, *boxes = write_examples(out, texts, self.noun)
        for part, pictures in self.parts.items():
            _write(data.parent / part, pictures)
        limits = (f"training.seed={seed}", *([f"training.max_minutes={minutes}"] if minutes else []))
        options = {"training.links": str(boxes[0]), "training.alignment_weight": BOX_WEIGHT} if boxes else {}
        return data, dev, merged_settings(overrides=(*self.settings, *limits), options=options)

    def _show(self, captioner: "Captioner", paths: Sequence[Path]) -> None:
        """Print the share of test pictures whose text is right, and the first few texts."""
        captions, pictures = captioner.caption(paths), self.parts["test"]
        num_right = sum(caption.text == each.text for caption, each in zip(captions, pictures, strict=True))
        share = 100.0 * num_right / len(captions)
        print(f"\n{share:.1f} % of {len(captions):,} other {self.noun} {self.success}\n")
        for caption, each in zip(captions[:NUM_SHOWN], pictures, strict=False):
            note = "" if caption.text == each.text else f" (should be: {each.text})"
            print(f"  {Path(caption.image).name}  {caption.text}{note}")

    def _drawn(self, captioner: "Captioner", picture: Path, out: Path, messages: Messages) -> str:
        """Draw the attention of a caption over its picture; returns the line that names the drawing."""
        from heedful.inspection.picture_plot import save_attention_over_image

        (caption,) = captioner.caption([picture], attention=True)
        if caption.attention is None:
            return ""
        path = beside(out, "-attention.png")
        sizes = caption.grid, caption.region
        note = save_attention_over_image(path, caption.image, caption.pieces, caption.attention, *sizes)
        if note:
            messages.say(note)
        return f"\nwhere the model looked for each {self.unit} of the first: {path}"


def boxed(index: int, words: str, boxes: "Mapping[int, Box]") -> str:
    """Line of a file of boxes about a picture of the training.

    Args:
        index: number of the picture.
        words: its text, with spaces between the words that have boxes.
        boxes: box of each word, by the index of the word.

    Returns:
        The line, as `heedful.data.boxes` reads it.
    """
    places = (f"{word}:{box.left},{box.top},{box.right},{box.bottom}" for word, box in boxes.items())
    return f"train/{index}.png\t{words}\t{' '.join(places)}\n"


def _write(folder: Path, pictures: Sequence[Picture]) -> None:
    """Write pictures, also over those that a stopped demonstration or one of another seed has left."""
    with needed_for("drawing pictures"):
        from PIL import Image
    folder.mkdir(exist_ok=True)
    for index, each in enumerate(pictures):
        Image.fromarray(each.pixels).save(folder / f"{index}.png")
