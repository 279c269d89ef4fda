"""Vocabularies: tokens and their ids."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, final

from heedful.errors import DamagedFile, FileRefused
from heedful.files.bounded_read import MOST_BULK_BYTES, read_json
from heedful.files.formats import VOCABULARY_FORMAT

PAD: Final = 0
UNK: Final = 1
BOS: Final = 2
"""Id of the token before the first of a target."""
EOS: Final = 3
"""Id of the token behind the last of a source or target."""
SPECIAL_TOKENS: Final = ("<pad>", "<unk>", "<bos>", "<eos>")


@final
class Vocabulary:
    """List of distinct tokens; a token's id is its index. The first four are pad, unk, bos, eos.

    Stored as JSON, so that a token may be a space, a separator or a line feed.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        """Create a vocabulary.

        Args:
            tokens: distinct tokens in the order of their ids; the first four are `SPECIAL_TOKENS`.

        Raises:
            FileRefused: a token is repeated or is not Unicode text, or the first four are not `SPECIAL_TOKENS`.
        """
        if tuple(tokens[: len(SPECIAL_TOKENS)]) != SPECIAL_TOKENS:
            raise FileRefused(f"vocabulary: must start with {', '.join(SPECIAL_TOKENS)}")
        self.tokens: Final = tuple(tokens)
        if len(set(self.tokens)) != len(self.tokens):
            repeated = next(token for token, count in Counter(tokens).items() if count > 1)
            raise FileRefused(f"vocabulary: token {repeated!r} is listed twice")
        try:
            "".join(self.tokens).encode("utf-8")
        except UnicodeEncodeError as error:
            raise FileRefused(f"vocabulary: a token holds half a character ({error.object[error.start]!a})") from None
        # The word "<eos>" in a text is an unknown word, not EOS.
        self._ids: Final = {token: index for index, token in enumerate(tokens) if index >= len(SPECIAL_TOKENS)}

    @classmethod
    def build(cls, sentences: Iterable[Sequence[str]], max_size: int = 0, min_count: int = 1) -> "Vocabulary":
        """Build a vocabulary of the most frequent tokens.

        Args:
            sentences: sequences of tokens.
            max_size: maximum number of tokens, the four special tokens included; 0 = no maximum.
            min_count: minimum count of a token; rarer tokens are left out.

        Returns:
            The vocabulary: special tokens, then the most frequent tokens first, ties in code-point order.
        """
        counts = Counter(token for sentence in sentences for token in sentence)
        for special in SPECIAL_TOKENS:
            counts.pop(special, None)
        ranked = sorted((item for item in counts.items() if item[1] >= min_count), key=lambda item: (-item[1], item[0]))
        room = max(0, max_size - len(SPECIAL_TOKENS)) if max_size else len(ranked)
        return cls([*SPECIAL_TOKENS, *(token for token, _ in ranked[:room])])

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Read a vocabulary file written by `save`.

        Raises:
            FileRefused: the file does not contain a list of distinct strings that begins with the special tokens.
            NewerFormat: a newer heedful wrote it.
        """
        try:
            tokens = read_json(path, MOST_BULK_BYTES)
        except (DamagedFile, OSError) as error:
            raise FileRefused(f"{path}: not a vocabulary: {error}") from None
        if isinstance(tokens, dict):  # format 1 was the bare list
            tokens = VOCABULARY_FORMAT.strip(path, tokens).get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise FileRefused(f"{path}: not a vocabulary: expected its tokens as a list of strings")
        try:
            return cls(tokens)
        except FileRefused as error:
            raise FileRefused(f"{path}: {error}") from None

    def save(self, path: Path) -> None:
        """Write the tokens as JSON."""
        facts = VOCABULARY_FORMAT.stamp({"tokens": self.tokens})
        path.write_text(json.dumps(facts, ensure_ascii=False, indent=0), encoding="utf-8", newline="\n")

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """Look up token ids; an unknown token has the id `UNK`.

        Args:
            tokens: the tokens.

        Returns:
            One id per token; none is pad, bos or eos.
        """
        return [self._ids.get(token, UNK) for token in tokens]
