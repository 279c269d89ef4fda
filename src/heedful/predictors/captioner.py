"""Captioner: a loaded model that describes images."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from heedful.config.base import read_toml, validate
from heedful.data.caption_files import DOUBT, CaptionFile
from heedful.data.captioned import ImageFaults, readable_image
from heedful.data.images import ImageConfig, checked_features, encode_png, picture_pixels, read_image, read_picture
from heedful.data.in_memory import example_rows
from heedful.data.prepare import EvaluationSet
from heedful.data.row_faults import LEFT_OUT
from heedful.data.rows import Columns
from heedful.engines.engine import decode_sorted
from heedful.engines.folder import CONFIG, ModelFolder
from heedful.engines.images import image_arrays, image_draw
from heedful.errors import DataError, UsageError
from heedful.evaluation.evaluate import evaluate
from heedful.evaluation.report import Report
from heedful.pages.attention_image import ImageView
from heedful.pages.attention_view import AttentionView
from heedful.predictors.engine_choice import Backends
from heedful.predictors.search_predictor import SearchPredictor
from heedful.predictors.translation import Alternative, MeasuredTranslations, decoded_texts
from heedful.search.config import SearchConfig, with_outputs
from heedful.search.interface import Hypothesis
from heedful.text.quoting import shortened
from heedful.text.tokenizer import TextConfig, Units
from heedful.text.tokenizer_files import load_tokenizer
from heedful.text.vocabulary import EOS

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from heedful.export.archived_captions import ArchivedCaptioner

Image: TypeAlias = "str | Path | bytes | NDArray[Any] | Picture"
"""Path of an image; content of a file of a picture; picture of Pillow; uint8 array [row, column] or [row, column,
channel] of pixels; or precomputed features [region, feature]."""
IMAGE_KEYS: Final = ("image", "picture", "source")
CAPTION_KEYS: Final = ("caption", "captions", "text", "target")
"""Keys of an image and of its captions in memory."""
WINDOW_IMAGES: Final = 256
"""Number of images that are read and decoded together, so that memory does not grow with the input."""


@final
@dataclass(frozen=True, eq=False)
class Caption:
    """Best caption of an image, with alternatives and attention.

    Example:
        >>> Caption("dog.jpg", "a dog runs", -0.5, -0.2, ())
        <Caption 'dog.jpg' -> 'a dog runs', log_prob -0.50>
    """

    image: str
    """Path of the image; empty for one in memory."""
    text: str
    log_prob: float
    """Log probability of the whole caption, in nats."""
    score: float
    """Score that captions are ranked by: log_prob after the length penalty."""
    alternatives: tuple[Alternative, ...]
    """All requested captions, best first, including the best one."""
    pieces: tuple[str, ...] = ()
    """Tokens of the caption, including EOS where the model generated it; empty without attention."""
    attention: NDArray[np.float32] | None = None
    """[piece, region] weights, regions row by row."""
    grid: tuple[int, int] = (1, 0)
    """Rows and columns of regions."""
    region: tuple[int, int] = (1, 1)
    """Rows and columns of pixels of a region."""
    error: str = ""
    """Why the image could not be read, if it could not; then there is no text."""

    def __repr__(self) -> str:
        return f"<Caption {shortened(self.image)} -> {shortened(self.text)}, log_prob {self.log_prob:.2f}>"


@final
class Captioner(SearchPredictor):
    """Loaded captioning model."""

    def __init__(
        self, folder: ModelFolder, device: str = "cpu", engine: str = "auto", ensemble: Sequence[ModelFolder] = ()
    ) -> None:
        """Load a model's tokenizer; its weights are loaded on first use.

        Args:
            folder: opened model folder.
            device: PyTorch device, such as cpu or cuda; "auto" takes a CUDA device where there is one.
            engine: torch, the name of an exported engine, or "auto": an exported engine whose results equal PyTorch's.
            ensemble: must be empty; part of the signature that all predictors share.

        Raises:
            UsageError: there is no such engine, or the ensemble is not empty.
        """
        if ensemble:
            raise UsageError(f"{folder.path}: a captioner runs alone; leave the ensemble out")
        tree = read_toml(folder.path / CONFIG)
        self.folder = folder
        self.text = validate(TextConfig, tree.get("text", {}), "text")
        self.images: Final = validate(ImageConfig, tree.get("images", {}), "images")
        self.search = validate(SearchConfig, tree.get("search", {}), "search")
        self.tokenizer: Final = load_tokenizer(
            folder.file("tokenizer"), self.text.target_units, self.text.normalization
        )
        sizes = (*self.images.sizes, len(self.tokenizer))
        self.backends = Backends(folder, sizes, image_draw(self.images), self.text.max_tokens, device, engine)

    def __repr__(self) -> str:
        return f"<Captioner {str(self.folder.path)!r}: {self.folder.facts.get('kind')}, engine {self.backends.engine}>"

    def archived(self, has_layers: bool = False) -> "ArchivedCaptioner":
        from heedful.export.archived_captions import ArchivedCaptioner

        return ArchivedCaptioner(self.folder, self.tokenizer, self.text, self.search, self.images)

    def caption(
        self,
        images: Iterable[Image],
        *,
        beam: int = 0,
        nbest: int = 1,
        attention: bool = False,
        search: SearchConfig | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> list[Caption]:
        """Describe images.

        Args:
            images: paths of pictures or of feature arrays; contents of files of pictures; pictures of Pillow; uint8
                arrays [row, column] or [row, column, channel]; or feature arrays [region, feature].
            beam: number of hypotheses per image; 0 = the model's default.
            nbest: number of captions per image.
            attention: whether to return attention weights.
            search: all other search settings; None = the model's own.
            cancelled: called between the steps of the search; once it returns True the search ends, and unfinished
                captions are returned as they are.

        Returns:
            One caption for each image, in order.

        Raises:
            UsageError: a single image was given, or an item is none, such as None; the message has its index.
            DataError: an image is unusable.

        Example:
            >>> heedful.load("photos.model", kind=Captioner).caption(["dog.jpg"])[0].text  # doctest: +SKIP
            'a dog runs on the beach'
        """
        if self._is_single(images):
            raise UsageError("caption: expected a list of images, got a single one; put it into a list")
        if not hasattr(images, "__iter__"):
            raise UsageError(f"caption: expected a list of images, got {images!r:.40}")
        return list(
            self.stream(images, with_outputs(search or self.search, beam, nbest), attention, cancelled=cancelled)
        )

    def stream(
        self,
        images: Iterable[Image],
        search: SearchConfig,
        attention: bool = False,
        window_images: int = WINDOW_IMAGES,
        skips_unusable: bool = False,
        cancelled: Callable[[], bool] | None = None,
    ) -> Iterator[Caption]:
        """Describe any number of images in constant memory.

        Args:
            images: as for `caption`.
            search: beam, penalties and limits.
            attention: whether to return attention weights.
            window_images: number of images that are read and decoded together.
            skips_unusable: whether an unusable image gets a caption without text, which has the error.
            cancelled: as for `caption`.

        Yields:
            One caption for each image, in order.

        Raises:
            DataError: an image is unusable, unless those are skipped.
        """
        remaining, num_done = iter(images), 0
        while window := list(islice(remaining, window_images)):
            read: list[NDArray[Any]] = []
            errors: dict[int, str] = {}
            for index, image in enumerate(window):
                try:
                    read.append(self._read(image, f"caption: item {num_done + index}"))
                except DataError as error:
                    if not skips_unusable:
                        raise
                    errors[index] = str(error)
            decoded: Iterator[list[Hypothesis]] = iter(())
            if read:
                backend, arrays = self.backends.searching(search, attention), image_arrays(read, self.images)
                hypotheses = decode_sorted(
                    backend, arrays, search, need_alignment=attention, first_index=num_done, cancelled=cancelled
                )
                decoded = iter(hypotheses)
            for index, image in enumerate(window):
                name = str(image) if isinstance(image, str | Path) else ""
                if index in errors:
                    yield Caption(name, "", -math.inf, -math.inf, (), error=errors[index])
                else:
                    yield self._finish(name, next(decoded))
            num_done += len(window)

    def evaluate(self, *data: Any, columns: Columns = (1, 2)) -> Report:
        """Describe images and compare with their captions, as `heedful evaluate` does.

        Args:
            data: one file of image paths, relative to its folder, and captions; rows with the same image give its
                references. Or examples in memory: pairs of an image and its caption or a list of captions, or
                dictionaries or a table with "image" and "caption"; images are as for `caption`.
            columns: columns of path and caption of a file, by 1-based number or by name.

        Returns:
            Scores with signatures, of all images and by length of the caption.

        Raises:
            DataError: an image is unusable, or an example lacks one or its caption.
        """
        if all(isinstance(part, str | Path) for part in data):
            return self.measure(self.read_items(tuple(map(Path, data)), columns)).report
        return self._measured(*_examples(data[0] if len(data) == 1 else data)).report

    def measure(self, items: Any, metrics: tuple[str, ...] = (), beam: int = 0) -> MeasuredTranslations:
        """Score the model on images with captions.

        Args:
            items: from `read_items`.
            metrics: keys of metrics; none = those that suit the captions.
            beam: beam width; 0 = the model's own.

        Raises:
            TypeError: the items are of another task.
        """
        if not isinstance(items, EvaluationSet):
            raise TypeError(f"a captioner is measured on images with captions, got {type(items).__name__}")
        return self._measured(items.sources, items.references, metrics, beam)

    def _measured(
        self, images: Sequence[Image], references: Sequence[list[str]], metrics: tuple[str, ...] = (), beam: int = 0
    ) -> MeasuredTranslations:
        search = with_outputs(self.search, beam, 1)
        self.backends.searching(search)  # loads the weights, so that their loading is not timed
        started = time.perf_counter()
        outputs = [caption.text for caption in self.stream(images, search)]
        seconds = time.perf_counter() - started
        # Lengths are those of the captions, because the name of an image says nothing about it.
        lengths = [texts[0] for texts in references]
        report = evaluate(outputs, references, lengths, metrics=metrics or self.metrics)
        return MeasuredTranslations(outputs, report, seconds, search.beam)

    def attention_views(self, sources: Sequence[str]) -> list[AttentionView]:
        # Precomputed features have no picture, and files may have been moved since the training.
        paths = [source for source in sources if self.images.kind == "pixels" and Path(source).is_file()]
        return [
            ImageView(
                f"{Path(one.image).name} → {one.text}",
                encode_png(read_image(Path(one.image), self.images)),
                one.grid,
                one.pieces,
                one.attention.tolist(),
                one.region,
            )
            for one in self.caption(paths, attention=True)
            if one.attention is not None
        ]

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of the metrics that suit the captions."""
        return caption_metrics(self.text.target_units)

    def predict(self, sources: Sequence[str]) -> list[str]:
        return [caption.text for caption in self.stream(sources, self.search)]

    def read_items(self, paths: tuple[Path, ...], columns: Columns) -> EvaluationSet:
        file, faults, images = CaptionFile(paths, columns, leaves_out_faults=True), ImageFaults(), dict[str, Path]()
        rows = [pair for pair in file if pair.source.strip() and pair.target.strip()]
        for pair in rows:  # before any work, and with the line
            if pair.source not in images:
                path = file.image(pair)
                is_usable = readable_image(path, self.images, file.where(pair), faults) is not None
                images |= {pair.source: path} if is_usable else {}
        notes = (*(note for note in file.notes if LEFT_OUT in note or DOUBT in note), *faults.notes())
        usable = (pair for pair in rows if pair.source in images)
        items = EvaluationSet.of(pair._replace(source=str(images[pair.source])) for pair in usable)
        items = replace(items, notes=notes)
        if not len(items):
            raise DataError(f"{paths[0]}: no row has an image and a caption; name their columns with --columns")
        return items

    def _is_single(self, images: object) -> bool:
        """Tell whether what should be several images is one; rows of its pixels would pass for grey pictures."""
        if isinstance(images, np.ndarray):
            has_colours = self.images.kind == "pixels" and images.ndim == 3 and images.shape[2] in (3, 4)
            return images.ndim == 2 or has_colours
        return isinstance(images, str | Path | bytes) or hasattr(images, "getexif")

    def _read(self, image: Any, where: str) -> NDArray[Any]:
        """Pixels or features of an image.

        Args:
            where: call and index of the image, for messages.

        Raises:
            DataError: the image is unusable.
            UsageError: it is of another kind than the model reads.
        """
        if isinstance(image, str | Path):
            return read_image(Path(image), self.images)
        is_array, is_file = isinstance(image, np.ndarray), isinstance(image, bytes)
        if not (is_array or is_file or hasattr(image, "getexif")):
            kinds = (
                "a path or an array" if self.images.kind == "features" else "a path, a picture of Pillow or an array"
            )
            raise UsageError(f"{where} is {image!r:.40}, of type {type(image).__name__}; give {kinds}")
        if self.images.kind == "features":
            if not is_array or image.ndim != 2 or image.shape[1] != self.images.num_features:
                shape = f"an array {list(image.shape)}" if is_array else "a picture"
                raise UsageError(f"{where} is {shape}; this model reads [region, {self.images.num_features}]")
            return checked_features(image, self.images, where)
        return read_picture(image, self.images, where) if is_file else picture_pixels(image, self.images, where)

    def _finish(self, image: str, hypotheses: Sequence[Hypothesis]) -> Caption:
        texts = decoded_texts(self.tokenizer, hypotheses)
        rows = zip(texts, hypotheses, strict=True)
        alternatives = tuple(Alternative(text, each.log_prob, each.score) for text, each in rows)
        best, hypothesis = alternatives[0], hypotheses[0]
        pieces: tuple[str, ...] = ()
        if hypothesis.weights is not None:
            ended = [EOS] if hypothesis.finish_reason == "eos" else []
            pieces = tuple(self.tokenizer.pieces([*hypothesis.token_ids, *ended]))
        sizes = self.images.grid, self.images.region
        return Caption(image, best.text, best.log_prob, best.score, alternatives, pieces, hypothesis.weights, *sizes)


def _examples(data: Any) -> tuple[list[Image], list[list[str]]]:
    """Images in memory, and the captions of each.

    Raises:
        DataError: there are none, or an example lacks its image or caption.
    """
    images: list[Image] = []
    references: list[list[str]] = []
    for number, row in enumerate(example_rows(data, "test")):
        image = next((row[key] for key in IMAGE_KEYS if row.get(key) is not None), None)
        own = next((row[key] for key in CAPTION_KEYS if row.get(key) is not None), None)
        texts = [own] if isinstance(own, str) else [*own] if isinstance(own, list | tuple) else []
        if image is None or not texts or not all(isinstance(text, str) and text.strip() for text in texts):
            raise DataError(f"test: row {number} lacks an image or a caption; give both, such as (image, caption)")
        images.append(image)
        references.append(texts)
    if not images:
        raise DataError("test: no examples; give at least one")
    return images, references


def caption_metrics(units: Units) -> tuple[str, ...]:
    """Choose metrics of captions; the last one selects the best model of a training.

    Args:
        units: units of the captions' tokens.
    """
    return ("exact_match", "character_error_rate" if units == "characters" else "bleu")
