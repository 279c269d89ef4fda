"""Tokenizers: text to token ids and back, by subword pieces, characters or words.

Tokenization is lossless: `decode(encode(text)) == normalize(text)` holds for pieces always (U+2581, the character that
SentencePiece writes for a space, is normalized to U+2582), and for characters and words if every token is in the
vocabulary and words are separated by single spaces. No language needs a word segmenter: the same kind of SentencePiece
model splits Chinese into characters and frequent character sequences, and German into subwords.
"""

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Literal, final

import sentencepiece
from pydantic import Field

from heedful.config.base import Config
from heedful.errors import DataError, FileRefused, UsageError
from heedful.text.columns import ColumnKind
from heedful.text.folding import Normalization, normal_form
from heedful.text.known_letters import KnownLetters
from heedful.text.token_places import byte_ranges, count_words
from heedful.text.vocabulary import BOS, EOS, PAD, SPECIAL_TOKENS, UNK, Vocabulary

Units = Literal["pieces", "characters", "words"]

SPACE_MARK: Final = "\u2581"  # SentencePiece's character for a space
_HALF: Final = re.compile("[\ud800-\udfff]")


class TextConfig(Config):
    """Settings of tokenizers, length limits and word vectors."""

    source_units: Units = "pieces"
    """Units of source tokens: pieces of words, words or characters; chosen from the data unless it is set."""
    target_units: Units = "pieces"
    """Units of target tokens; chosen from the data unless it is set."""
    source_columns: list[ColumnKind] = Field(default=[], max_length=100)
    """Kinds of the columns that are one source, where several are: text, or features, which are whole tokens; chosen
    from the data unless they are set."""
    shared: bool = True
    """Whether both sides share one vocabulary, if they use the same units."""
    vocabulary_size: int = Field(default=0, ge=0, le=1_000_000)
    """Number of tokens in each vocabulary; 0 = chosen from the size of the corpus."""
    min_count: int = Field(default=1, ge=1, le=1_000_000_000)
    """Minimum count of a word or character in the vocabulary; rarer ones become the unknown token."""
    normalization: Normalization = "NFC"
    """Unicode normalization of all texts before they are tokenized; none = texts stay as they are."""
    max_characters: int = Field(default=2_000, ge=1, le=1_000_000_000)
    """Maximum length of a training line in characters, checked before tokenization; longer lines are left out."""
    max_tokens: int = Field(default=250, ge=1, le=1_000_000_000)
    """Maximum length of either side in tokens: training leaves longer pairs out; `translate` cuts longer sources and
    warns."""
    max_training_tokens: int = Field(default=0, ge=0, le=1_000_000_000)
    """Lower maximum for training only, to test a model on longer sequences than it was trained on; 0 = max_tokens."""
    cut_sources: bool = False
    """Whether training cuts sources beyond max_tokens, as `translate` does, instead of leaving them out; `translate`
    takes each text as a whole then. Chosen for summaries."""
    labels: Literal["one", "several", "ordered", "number"] = "one"
    """Kind of labels: one of a text; several, each of which it has or has not; ordered ones, such as stars, by the
    number in each; or a number. Several labels are recognised in the data."""
    split_sentences: bool = False
    """Whether sources are documents: every sentence ends in EOS, as hierarchical models need it."""
    source_vectors: str = ""
    """File of word vectors for the initial source embedding: word2vec, GloVe or fastText's .vec."""
    target_vectors: str = ""
    """File of word vectors that initialise the target embeddings; empty = none."""
    vectors: Literal["tuned", "frozen"] = "tuned"
    """Whether training updates the word vectors; `frozen` freezes the whole embedding, words without a vector too."""

    @property
    def longest(self) -> int:
        """Maximum length of either side in training, in tokens."""
        return min(self.max_tokens, self.max_training_tokens or self.max_tokens)

    @property
    def is_shared(self) -> bool:
        """Whether both sides use one vocabulary."""
        return self.shared and self.source_units == self.target_units and not self.source_columns

    @property
    def reads_whole(self) -> bool:
        """Whether a model reads a text as a whole."""
        return self.split_sentences or self.cut_sources

    @property
    def reads_sentences(self) -> bool:
        """Whether a model reads sentences, not documents, columns or characters."""
        units = self.source_units, self.target_units
        return not (self.split_sentences or self.source_columns or "characters" in units)


class Tokenizer(ABC):
    """Tokenizer of one side: text to ids and back."""

    normalization: Normalization

    def normalize(self, text: str) -> str:
        """Convert text to the Unicode normal form that the model was trained on."""
        return normal_form(text, self.normalization)

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Convert text to token ids, without BOS and EOS.

        Returns:
            Ids, each below `len(self)`; none is pad, bos or eos.
        """

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Convert texts to token ids, as `encode` does each.

        Returns:
            Ids of each text, in order.
        """
        return [self.encode(text) for text in texts]

    @property
    def letters(self) -> KnownLetters | None:
        """Letters that sources may have, in whose forms words are read; None where words are read as they are."""
        return None

    def unknown_letters(self, text: str) -> tuple[str, ...]:
        """List the characters of a source that the model does not know in any form.

        Returns:
            Each once; none where words are read as they are.
        """
        return self.letters.unknown(normal_form(text, self.normalization)) if self.letters else ()

    def trial_text(self) -> str:
        """Return a short text that every model with this tokenizer takes, such as to load it by a translation."""
        return "1"

    def unknown_ids(self) -> list[int]:
        """List the tokens for text that the vocabulary lacks.

        Returns:
            The unknown token; of pieces, the bytes too.
        """
        return [UNK]

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """Convert token ids to text.

        Args:
            ids: token ids; pad, bos and eos are left out.
        """

    @abstractmethod
    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return readable tokens, for alignments and plots.

        Args:
            ids: token ids.

        Returns:
            One string per token; subword pieces show a leading space as ``▁``.
        """

    @abstractmethod
    def word_indices(self, ids: Sequence[int]) -> list[int]:
        """Return, for each token, the index of its space-separated word; a space belongs to the word after it.

        Args:
            ids: token ids without bos or a last eos. The eos of an earlier sentence belongs to the word before it.

        Returns:
            0-based word indices, in non-decreasing order.
        """

    def ranges(self, text: str) -> list[tuple[int, int]]:
        """Locate the tokens of a text.

        Returns:
            For each id of `encode(text)`, the start and the end of its characters. Of tokens that are bytes of one
            character, only the last has a range that is not empty.

        Raises:
            UsageError: the tokenizer changes texts, so that its tokens have no place in them.
        """
        raise UsageError(f"{type(self).__name__} of {len(text)} characters: it cannot locate tokens in a text")

    @abstractmethod
    def save(self, folder: Path, name: str) -> str:
        """Write the tokenizer into a folder.

        Args:
            name: file name without suffix.

        Returns:
            The file name written.
        """

    @abstractmethod
    def __len__(self) -> int: ...


def load_pieces(model: bytes) -> Any:
    """Load a SentencePiece model.

    Args:
        model: the bytes of the model.

    Returns:
        The processor; the binding is untyped.

    Raises:
        FileRefused: the bytes are not a SentencePiece model.
    """
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=model)
    except (RuntimeError, TypeError, UnicodeDecodeError) as error:
        reason = "a piece is not UTF-8" if isinstance(error, UnicodeDecodeError) else error
        raise FileRefused(f"not a SentencePiece model: {reason}") from None


def for_sentencepiece(text: str) -> str:
    """Replace characters that SentencePiece does not take as they are, each by another one.

    U+2581, which it would read as a space, becomes the block beside it, so that words stay words. Halves of surrogate
    pairs, as of an emoji that was cut in two, have no UTF-8.

    Example:
        >>> for_sentencepiece("a\u2581b")
        'a\u2582b'
    """
    text = text.replace(SPACE_MARK, "\u2582")
    return text if text.isascii() else _HALF.sub("\ufffd", text)


@final
class PieceTokenizer(Tokenizer):
    """Lossless SentencePiece tokenizer: a unigram model with byte fallback (Kudo and Richardson 2018).

    The exceptions are U+2581, which SentencePiece uses for a space, and halves of surrogate pairs: `normalize` replaces
    them (`for_sentencepiece`).
    """

    def __init__(self, model: bytes, normalization: Normalization) -> None:
        """Load a serialized SentencePiece model.

        Args:
            model: the bytes of the model.
            normalization: Unicode normal form applied before the model.

        Raises:
            FileRefused: the bytes are not a SentencePiece model, or its special ids differ from ours.
        """
        self.model: Final = model
        self.normalization = normalization
        try:
            self._processor: Any = load_pieces(model)
        except FileRefused as error:
            raise FileRefused(f"tokenizer: {error}") from None
        processor = self._processor
        if (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()) != (PAD, UNK, BOS, EOS):
            raise FileRefused("tokenizer: its pad, unk, bos, eos are not ids 0, 1, 2, 3")

    @classmethod
    def train(cls, lines: Iterable[str], size: int, normalization: Normalization) -> "PieceTokenizer":
        """Learn pieces from text.

        Args:
            size: number of pieces; a small text may yield fewer.
            normalization: Unicode normal form that `encode` applies; `lines` are already in it.

        Raises:
            DataError: the text is too small to learn pieces from.
        """
        written = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.Train(  # pyright: ignore[reportUnknownMemberType]
                sentence_iterator=iter(lines),
                model_writer=written,
                model_type="unigram",
                vocab_size=size,
                hard_vocab_limit=False,
                byte_fallback=True,
                character_coverage=0.9995,
                normalization_rule_name="identity",
                remove_extra_whitespaces=False,
                max_sentence_length=1_000_000,
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                pad_piece=SPECIAL_TOKENS[PAD],
                unk_piece=SPECIAL_TOKENS[UNK],
                bos_piece=SPECIAL_TOKENS[BOS],
                eos_piece=SPECIAL_TOKENS[EOS],
                num_threads=1,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise DataError(f"tokenizer: SentencePiece could not learn {size} pieces: {error}") from None
        return cls(written.getvalue(), normalization)

    def normalize(self, text: str) -> str:
        return for_sentencepiece(super().normalize(text))

    def encode(self, text: str) -> list[int]:
        return self._processor.encode(self.normalize(text))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        # In one call, during which other threads of Python run; and a text costs a third less than by itself.
        return self._processor.encode([self.normalize(text) for text in texts], num_threads=1)

    def unknown_ids(self) -> list[int]:
        return [UNK, *(index for index in range(len(self)) if self._processor.is_byte(index))]

    def scores(self) -> list[float]:
        """List the log probabilities of all pieces under the unigram model, in float32."""
        return [self._processor.get_score(index) for index in range(len(self))]

    def decode(self, ids: Sequence[int]) -> str:
        return self._processor.decode([int(index) for index in ids if index not in (PAD, BOS, EOS)])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        pieces = self._pieces
        return [pieces[index] for index in ids]

    @cached_property
    def _pieces(self) -> list[str]:
        """Text of every id; asking the library for each token of a corpus takes longer than encoding it."""
        return [self._processor.id_to_piece(index) for index in range(len(self))]

    def word_indices(self, ids: Sequence[int]) -> list[int]:
        return count_words(self.pieces(ids), SPACE_MARK)

    def ranges(self, text: str) -> list[tuple[int, int]]:
        ids = self.encode(text)
        sizes = [1 if self._processor.is_byte(index) else len(self._surface(index).encode()) for index in ids]
        return byte_ranges(for_sentencepiece(text), sizes)

    def _surface(self, index: int) -> str:
        return self._processor.id_to_piece(index).replace(SPACE_MARK, " ")

    def save(self, folder: Path, name: str) -> str:
        file_name = f"{name}.model"
        (folder / file_name).write_bytes(self.model)
        return file_name

    def __len__(self) -> int:
        return self._processor.get_piece_size()


@final
class UnitTokenizer(Tokenizer):
    """Tokenizer of characters, or of words separated by spaces."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        units: Literal["characters", "words"],
        normalization: Normalization,
        reads_forms: bool = False,
    ) -> None:
        """Store the vocabulary.

        Args:
            reads_forms: whether words with letters that the vocabulary lacks are read in a form that it has, such as in
                lower case; for sources of characters.
        """
        self.vocabulary = vocabulary
        self.units: Literal["characters", "words"] = units
        self.normalization = normalization
        has_letters = reads_forms and units == "characters"
        self._letters = KnownLetters(vocabulary.tokens[len(SPECIAL_TOKENS) :]) if has_letters else None

    @property
    def letters(self) -> KnownLetters | None:
        return self._letters

    def normalize(self, text: str) -> str:
        normal = super().normalize(text)
        return self._letters.fold(normal) if self._letters else normal

    @staticmethod
    def split(text: str, units: Literal["characters", "words"]) -> list[str]:
        """Split text into characters or words.

        Args:
            units: "characters" or "words".

        Returns:
            The tokens.

        Example:
            >>> UnitTokenizer.split("a bc", "characters"), UnitTokenizer.split("a bc", "words")
            (['a', ' ', 'b', 'c'], ['a', 'bc'])
        """
        return list(text) if units == "characters" else [word for word in text.split(" ") if word]

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.ids(self.split(self.normalize(text), self.units))

    def decode(self, ids: Sequence[int]) -> str:
        tokens = [self.vocabulary.tokens[index] for index in ids if index not in (PAD, BOS, EOS)]
        return ("" if self.units == "characters" else " ").join(tokens)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.tokens[index] for index in ids]

    def word_indices(self, ids: Sequence[int]) -> list[int]:
        if self.units == "words":
            return [max(0, number - 1) for number in accumulate(int(index != EOS) for index in ids)]
        # No space stands between two sentences, so one is put before the first character of a sentence.
        characters = ["" if index == EOS else self.vocabulary.tokens[index] for index in ids]
        after = [False, *(index == EOS for index in ids[:-1])]
        return count_words([" " * first + one for first, one in zip(after, characters, strict=False)], " ")

    def ranges(self, text: str) -> list[tuple[int, int]]:
        ranges: list[tuple[int, int]] = []
        end = 0
        for token in self.split(text, self.units):
            start = text.index(token, end)
            end = start + len(token)
            ranges.append((start, end))
        return ranges

    def save(self, folder: Path, name: str) -> str:
        file_name = f"{name}.json"
        self.vocabulary.save(folder / file_name)
        return file_name

    def __len__(self) -> int:
        return len(self.vocabulary)
