"""Boxes of the words of captions: a file of them, and the links to regions that they give to a caption's tokens.

Liu et al. 2017, arXiv:1605.09553, teach attention the places of words, as guided alignment teaches it word links. Each
line has an image, the words of its caption separated by spaces, and boxes such as 0:10,20,64,48, separated by tabs: the
first word stands for what is between columns 10 and 64 and rows 20 and 48 of the picture, in pixels.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, final

from heedful.data.caption_files import CaptionFile
from heedful.data.corpus import Pair
from heedful.data.corrected_links import TokenLinks
from heedful.data.encoded import ENCODED, write_encoded
from heedful.data.images import ImageConfig, upright_size
from heedful.data.scaled_pictures import fit
from heedful.data.word_spans import Span, spell, spell_words, tokens_of
from heedful.errors import DataError
from heedful.text.counts import counted
from heedful.text.lines import read_lines
from heedful.text.text_files import check_file
from heedful.text.tokenizer import Tokenizer

_FORM: Final = "WORD:LEFT,TOP,RIGHT,BOTTOM, words counted from 0, the rest in pixels"


class Box(NamedTuple):
    """Part of a picture, in pixels from its upper left corner."""

    left: float
    top: float
    right: float
    bottom: float


@final
class BoxedCaptions:
    """Boxes of the words of captions, from a file."""

    def __init__(self, path: Path, tokenizer: Tokenizer) -> None:
        """Read the file.

        Args:
            path: the file, gzip or not.

        Raises:
            DataError: it does not exist, or a line has another form; the message names file:line.
        """
        check_file(path)
        self.path: Final = path
        self._tokenizer: Final = tokenizer
        self._captions: Final[dict[tuple[str, str], tuple[list[Span], list[tuple[int, Box]], str]]] = {}
        for number, line in enumerate(read_lines(path, nul="refuse"), 1):
            where = f"{path}:{number}"
            if not line.strip():
                continue
            cells = line.split("\t")
            if len(cells) != 3:
                raise DataError(
                    f"{where}: {len(cells)} columns; expected an image, the words of its caption, and boxes that are "
                    "separated by spaces"
                )
            _, words = spell_words(cells[1], tokenizer)
            boxes = [_parse(each, len(words), where) for each in cells[2].split()]
            if not boxes:
                raise DataError(f"{where}: no box; expected {_FORM}, separated by spaces")
            self._captions[self._key(cells[0], cells[1])] = words, boxes, where

    def __len__(self) -> int:
        return len(self._captions)

    def _key(self, image: str, caption: str) -> tuple[str, str]:
        # The text itself, because unknown words are alike as tokens.
        return image.strip(), "".join(self._tokenizer.normalize(caption).split())

    def links(self, pair: Pair, token_ids: Sequence[int], size: tuple[int, int], config: ImageConfig) -> TokenLinks:
        """Link the tokens of a caption to the regions of their boxes.

        Args:
            pair: the image, as the data name it, and its caption.
            token_ids: tokens of the caption, without EOS.
            size: width and height of the picture.
            config: sizes of the pictures that the model reads.

        Returns:
            The region and the token's position of each link; of several lines about one caption the last counts, and
            one that the file lacks has no links.

        Raises:
            DataError: a box leads out of the picture.
        """
        _, tokens = spell(self._tokenizer.pieces(token_ids))
        words, boxes, where = self._captions.get(self._key(pair.source, pair.target), ([], [], ""))
        linked: set[tuple[int, int]] = set()
        for word, box in boxes:
            if box.right > size[0] or box.bottom > size[1]:
                shown = ",".join(f"{number:g}" for number in box)
                raise DataError(f"{where}: box {shown} leads out of the picture of {size[0]} x {size[1]} pixels")
            positions = tokens_of(words[word], tokens)
            linked |= {(token, region) for region in regions_of(box, size, config) for token in positions}
        ordered = sorted(linked)
        return [region for _, region in ordered], [token for token, _ in ordered]

    def find(self, pair: Pair) -> tuple[str, str] | None:
        """Find a caption in the file.

        Returns:
            Its key, equal for equal captions of one image; None = the file has no boxes of it.
        """
        key = self._key(pair.source, pair.target)
        return key if key in self._captions else None


def store_boxes(
    path: Path,
    file: CaptionFile,
    captions: Sequence[tuple[Pair, Sequence[int]]],
    tokenizer: Tokenizer,
    config: ImageConfig,
    folder: Path,
) -> str:
    """Store the links of captions to the regions of their boxes, as those of a corpus.

    Args:
        file: the data file, which says where images are.
        captions: rows of the data, and the tokens of their captions, EOS included.
        config: sizes of the pictures that the model reads.

    Returns:
        A line that says how many captions have boxes.

    Raises:
        DataError: the file is malformed, a box leads out of its picture, or no line is about one of the captions.

    Cost: each picture with boxes is opened once.
    """
    boxed = BoxedCaptions(path, tokenizer)
    trained: set[tuple[str, str]] = set()
    sizes: dict[str, tuple[int, int]] = {}

    def links() -> Iterator[TokenLinks]:
        for pair, ids in captions:
            if (key := boxed.find(pair)) is None:
                yield [], []
                continue
            trained.add(key)
            if pair.source not in sizes:
                sizes[pair.source] = upright_size(file.image(pair), file.where(pair))
            yield boxed.links(pair, ids[:-1], sizes[pair.source], config)

    rows, columns = config.grid
    longest = max(len(ids) for _, ids in captions)
    write_encoded(folder, links(), max(longest, rows * columns))
    if not trained:
        (folder / ENCODED).unlink()
        raise DataError(
            f"{path}: none of its {counted(len(boxed), 'caption')} is trained on; write path and caption as in "
            f"{file.path}"
        )
    others = len(boxed) - len(trained)
    note = f"; those of {others:,} more are not trained on" if others else ""
    return f"{path}: boxes of {counted(len(trained), 'caption')}{note}"


def regions_of(box: Box, size: tuple[int, int], config: ImageConfig) -> list[int]:
    """Find the regions of a box: those whose centre lies in it, or else the one with its centre.

    Args:
        size: width and height of the picture.
        config: sizes of the pictures that the model reads.

    Returns:
        Numbers of the regions, row by row.

    Example:
        >>> regions_of(Box(0, 0, 50, 100), (100, 100), ImageConfig(height=32, width=32, region_size=8))
        [0, 1, 4, 5, 8, 9, 12, 13]
        >>> regions_of(Box(90, 90, 92, 91), (100, 100), ImageConfig(height=32, width=32, region_size=8))
        [15]
    """
    scaled, corner = fit(size, config.width, config.height)
    rows, columns = config.grid
    spans: list[list[int]] = []
    for axis, (begin, end, number) in enumerate(((box.left, box.right, columns), (box.top, box.bottom, rows))):
        side = config.region[1 - axis]
        factor = scaled[axis] / size[axis] / side
        first, last = (corner[axis] / side + factor * edge for edge in (begin, end))
        inside = range(math.ceil(first - 0.5), math.floor(last - 0.5) + 1)
        middle = min(number - 1, int((first + last) / 2))
        spans.append([each for each in inside if 0 <= each < number] or [middle])
    return [row * columns + column for row in spans[1] for column in spans[0]]


def _parse(text: str, num_words: int, where: str) -> tuple[int, Box]:
    """Word and box.

    Raises:
        DataError: it is neither.
    """
    word, _, numbers = text.partition(":")
    try:
        position, box = int(word), Box(*map(float, numbers.split(",")))
    except (ValueError, TypeError):
        raise DataError(f"{where}: {text!r} is no box; expected {_FORM}") from None
    if not 0 <= position < num_words:
        raise DataError(f"{where}: {text!r} is of no word of its {num_words}; words are counted from 0")
    if not (0 <= box.left < box.right < math.inf and 0 <= box.top < box.bottom < math.inf):
        raise DataError(f"{where}: {text!r}: expected 0 <= LEFT < RIGHT and 0 <= TOP < BOTTOM, in pixels")
    return position, box
