"""Tokenizers of Marian models: SentencePiece models with a separate vocabulary that assigns the ids."""

import base64
import binascii
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, final

from heedful.errors import FileRefused, NewerFormat
from heedful.files.bounded_read import MOST_BULK_BYTES, read_json_object
from heedful.files.formats import MARIAN_TOKENIZER_FORMAT
from heedful.text.folding import Normalization
from heedful.text.token_places import count_words
from heedful.text.tokenizer import SPACE_MARK, Tokenizer, for_sentencepiece, load_pieces
from heedful.text.vocabulary import BOS, EOS, PAD, Vocabulary

_NO_PIECE: Final = -100.0
SUFFIX: Final = ".marian"
"""Suffix of tokenizer files: JSON of the tokens and, in base64, the SentencePiece model."""


@final
class MarianTokenizer(Tokenizer):
    """Tokenizer of one side of a Marian model; pieces that are not in its vocabulary become the unknown token.

    A source for a multilingual model begins with a token such as ``>>fra<<``, which selects the target language.
    """

    def __init__(self, model: bytes, vocabulary: Vocabulary, normalization: Normalization = "none") -> None:
        """Load a serialized SentencePiece model.

        Args:
            model: the bytes of the model; its own ids are not used.
            vocabulary: tokens and their ids; source and target may share one vocabulary.
            normalization: Unicode normal form applied before the model's own normalization.

        Raises:
            FileRefused: the bytes are not a SentencePiece model.
        """
        if not model:
            raise FileRefused("not a SentencePiece model: empty")
        self.model: Final = model
        self.vocabulary: Final = vocabulary
        self.normalization = normalization
        self._processor: Final = load_pieces(model)

    @classmethod
    def load(cls, path: Path, normalization: Normalization) -> "MarianTokenizer":
        """Read a tokenizer file written by `save`.

        Args:
            normalization: Unicode normal form applied before the model's own normalization.

        Raises:
            FileRefused: the file is missing or is not a Marian tokenizer.
            NewerFormat: a newer heedful wrote it.
        """
        try:
            content = read_json_object(path, MOST_BULK_BYTES)
            MARIAN_TOKENIZER_FORMAT.check(path, content)
            tokens, model = content["tokens"], base64.b64decode(content["model"], validate=True)
            if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
                raise FileRefused("its tokens are no list of strings")
            return cls(model, Vocabulary(tokens), normalization)
        except NewerFormat:
            raise
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
            binascii.Error,
            FileRefused,
        ) as error:
            raise FileRefused(f"{path}: not a tokenizer: {error}") from None

    def normalize(self, text: str) -> str:
        return for_sentencepiece(super().normalize(text))

    def encode(self, text: str) -> list[int]:
        text = self.normalize(text)
        end = text.find("<<") + 2 if text.startswith(">>") and "<<" in text else 0
        marks = [text[:end]] if end else []
        return self.vocabulary.ids([*marks, *self._processor.encode(text[end:], out_type=str)])

    def decode(self, ids: Sequence[int]) -> str:
        pieces = self.pieces([index for index in ids if index not in (PAD, BOS, EOS)])
        return self._processor.decode_pieces(pieces).replace(SPACE_MARK, " ").strip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.tokens[int(index)] for index in ids]

    def scores(self) -> list[float]:
        """List the log probabilities of all tokens under the unigram model; those that are no pieces have -100."""
        known = {self._processor.id_to_piece(index): index for index in range(self._processor.get_piece_size())}
        tokens = self.vocabulary.tokens
        return [self._processor.get_score(known[token]) if token in known else _NO_PIECE for token in tokens]

    def word_indices(self, ids: Sequence[int]) -> list[int]:
        return count_words(self.pieces(ids), SPACE_MARK)

    def save(self, folder: Path, name: str) -> str:
        file_name = f"{name}{SUFFIX}"
        model = base64.b64encode(self.model).decode("ascii")
        content = MARIAN_TOKENIZER_FORMAT.stamp({"tokens": self.vocabulary.tokens, "model": model})
        (folder / file_name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8", newline="\n")
        return file_name

    def __len__(self) -> int:
        return len(self.vocabulary)
