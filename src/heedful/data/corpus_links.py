"""Token alignments of all training pairs, learned from the pairs alone, for guided alignment.

Words are aligned by IBM model 1 or 2 in both directions (`align_pairs`), and a link between words becomes links between
all their tokens: Chen et al. 2016, arXiv:1607.01628, and Garg et al. 2019, arXiv:1909.02074.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, final

import numpy as np

from heedful.data.corrected_links import TokenLinks
from heedful.data.encoded import ENCODED, EncodedCorpus, EncodedSide, write_encoded
from heedful.errors import FileRefused, NewerFormat
from heedful.text.links import Links
from heedful.text.tokenizer import SPACE_MARK, Tokenizer
from heedful.text.word_alignment import AlignmentModel, align_pairs

MAX_PLACES: Final = 8_000_000
"""Largest number of source words times target words aligned at once; takes half a gigabyte of memory."""
LONGEST_WORD: Final = 12
"""Mean tokens per word above which a text counts as written without spaces; its tokens then serve as words."""

SPACES: Final = " " + SPACE_MARK

_SAMPLED: Final = 1000

Words = list[tuple[int, ...]]
"""Positions of the tokens of each word."""


def link_corpus(
    corpus: EncodedCorpus,
    tokenizers: tuple[Tokenizer, Tokenizer],
    folder: Path,
    model: AlignmentModel = "ibm1",
    corrected: Mapping[int, TokenLinks] | None = None,
) -> EncodedCorpus:
    """Align the tokens of a corpus; links are computed once, or again where their files are damaged.

    Args:
        corrected: token links by index of a pair, in place of those that are learned.

    Returns:
        The corpus with `links`, the source and target positions of each pair's alignment.

    Raises:
        NewerFormat: a newer heedful wrote the files.

    Cost: that of `align_pairs`, in parts of constant memory.
    """
    try:
        if (folder / ENCODED).is_file():
            return with_links(corpus, folder)
    except NewerFormat:
        raise
    except FileRefused:
        pass
    longest = int(max(corpus.source.lengths.max(initial=0), corpus.target.lengths.max(initial=0)))
    learned, corrected = _token_links(corpus, tokenizers, model), corrected or {}
    write_encoded(folder, (corrected.get(index, links) for index, links in enumerate(learned)), longest)
    return with_links(corpus, folder)


def with_links(corpus: EncodedCorpus, folder: Path, num_regions: int = 0) -> EncodedCorpus:
    """Add the links of a folder to a corpus, all of which must be positions of its pairs.

    Args:
        num_regions: number of positions of each source, for sources that are pictures; 0 = their tokens.

    Returns:
        The corpus with `links`.

    Raises:
        FileRefused: the files are damaged.
    """
    links = EncodedCorpus.read(folder)
    are_pairs = len(links) == len(corpus) and bool((links.source.lengths == links.target.lengths).all())
    limits = np.full(len(corpus), num_regions) if num_regions else corpus.source.lengths
    if not (are_pairs and links.source.lie_below(limits) and links.target.lie_below(corpus.target.lengths)):
        raise FileRefused(f"{folder}: damaged: the alignment links are not of these pairs; delete the folder")
    return EncodedCorpus(corpus.source, corpus.target, links)


def read_linked(data: Path, num_regions: int = 0) -> EncodedCorpus:
    """Read the encoded pairs of a training, with their links if there are any.

    Args:
        num_regions: as for `with_links`.

    Raises:
        FileRefused: the files are damaged.
    """
    corpus, links = EncodedCorpus.read(data), data / "links"
    return with_links(corpus, links, num_regions) if (links / ENCODED).is_file() else corpus


def _token_links(
    corpus: EncodedCorpus, tokenizers: tuple[Tokenizer, Tokenizer], model: AlignmentModel
) -> Iterator[TokenLinks]:
    """Positions of linked tokens of each pair; EOS has no links."""
    source, target = (_SideWords(*side) for side in zip((corpus.source, corpus.target), tokenizers, strict=True))
    sizes = corpus.source.lengths.astype(np.int64) @ corpus.target.lengths
    num_parts = 1 + int(sizes) // MAX_PLACES
    # Each part takes every n-th pair, so that all parts are alike.
    alignments: list[Links] = [[] for _ in range(len(corpus))]
    for part in range(num_parts):
        indices = range(part, len(corpus), num_parts)
        pairs = [(source.texts(index), target.texts(index)) for index in indices]
        for index, links in zip(indices, align_pairs(pairs, "grow-diag", model=model), strict=True):
            alignments[index] = links
    for index, links in enumerate(alignments):
        yield broadcast_links(links, source.words(index), target.words(index))


def broadcast_links(links: Links, source_words: Words, target_words: Words) -> TokenLinks:
    """Expand links between words to links between all their tokens.

    Args:
        links: links between words.
        source_words: positions of the tokens of each source word.
        target_words: positions of the tokens of each target word.

    Returns:
        The source position and the target position of each link between tokens.

    Example:
        >>> broadcast_links([(0, 0), (1, 1)], [(0, 1), (2,)], [(0,), (1,)])
        ([0, 1, 2], [0, 0, 1])
    """
    linked = [(s, t) for left, right in links for s in source_words[left] for t in target_words[right]]
    return [s for s, _ in linked], [t for _, t in linked]


@final
class _SideWords:
    """Words of one side of a corpus, as groups of its tokens."""

    def __init__(self, side: EncodedSide, tokenizer: Tokenizer) -> None:
        self._side = side
        self._tokenizer = tokenizer
        self._pieces = [piece.lower() for piece in tokenizer.pieces(range(len(tokenizer)))]
        step = 1 + len(side) // _SAMPLED
        sample = [self._cut(side[index].tolist()[:-1]) for index in range(0, len(side), step)]
        num_words = sum(len(words) for words in sample)
        self._has_words = sum(len(word) for words in sample for word in words) <= LONGEST_WORD * num_words

    def words(self, index: int) -> Words:
        ids = self._side[index].tolist()[:-1]
        return self._cut(ids) if self._has_words else [(position,) for position in range(len(ids))]

    def texts(self, index: int) -> list[str]:
        ids = self._side[index].tolist()
        texts = ("".join(self._pieces[ids[position]] for position in word) for word in self.words(index))
        # A word's tokens include the space before it, except for the first word of a text.
        return [text.strip(SPACES) or text for text in texts]

    def _cut(self, ids: Sequence[int]) -> Words:
        words: Words = []
        for position, word in enumerate(self._tokenizer.word_indices(ids)):
            if word == len(words):
                words.append(())
            words[word] += (position,)
        return words
