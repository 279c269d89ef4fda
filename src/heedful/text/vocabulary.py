"""Vocabularies: tokens and their ids."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, final

from heedful.errors import FileRefused
from heedful.formats import VOCABULARY_FORMAT

PAD: Final = 0
UNK: Final = 1
BOS: Final = 2
EOS: Final = 3
SPECIAL_TOKENS: Final = ("<pad>", "<unk>", "<bos>", "<eos>")


@final
class Vocabulary:
    """List of distinct tokens; a token's id is its index. The first four are pad, unk, bos, eos.

    Kept on disk as JSON, so that a token may be a space, a separator or a line feed.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        """Make a vocabulary of tokens in the order of their ids.

        Args:
            tokens: distinct; the first four are `SPECIAL_TOKENS`.

        Raises:
            FileRefused: tokens are repeated, or the special ones are not first.
        """
        if tuple(tokens[: len(SPECIAL_TOKENS)]) != SPECIAL_TOKENS:
            raise FileRefused(f"vocabulary: must start with {', '.join(SPECIAL_TOKENS)}")
        self.tokens: Final = tuple(tokens)
        if len(set(self.tokens)) != len(self.tokens):
            repeated = next(token for token, count in Counter(tokens).items() if count > 1)
            raise FileRefused(f"vocabulary: token {repeated!r} is listed twice")
        # Text may hold the word "<eos>": it is unknown there, and ends nothing.
        self._ids: Final = {token: index for index, token in enumerate(tokens) if index >= len(SPECIAL_TOKENS)}

    @classmethod
    def build(cls, sentences: Iterable[Sequence[str]], max_size: int = 0, min_count: int = 1) -> "Vocabulary":
        """Collect the most frequent tokens.

        Args:
            sentences: each a sequence of tokens.
            max_size: most tokens to keep, the special four included; 0 keeps all.
            min_count: tokens seen less often are left out.

        Returns:
            The vocabulary, most frequent first, ties in code-point order.
        """
        counts = Counter(token for sentence in sentences for token in sentence)
        for special in SPECIAL_TOKENS:
            counts.pop(special, None)
        ranked = sorted((item for item in counts.items() if item[1] >= min_count), key=lambda item: (-item[1], item[0]))
        room = max(0, max_size - len(SPECIAL_TOKENS)) if max_size else len(ranked)
        return cls([*SPECIAL_TOKENS, *(token for token, _ in ranked[:room])])

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Read a file of `save`.

        Args:
            path: the JSON file.

        Returns:
            The vocabulary.

        Raises:
            FileRefused: the file holds no list of distinct strings.
            NewerFormat: a newer heedful wrote it.
        """
        try:
            tokens = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError, OSError) as error:
            raise FileRefused(f"{path}: not a vocabulary: {error}") from None
        if isinstance(tokens, dict):  # the bare list was format 1
            tokens = VOCABULARY_FORMAT.strip(path, tokens).get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise FileRefused(f"{path}: not a vocabulary: expected its tokens as a list of strings")
        try:
            return cls(tokens)
        except FileRefused as error:
            raise FileRefused(f"{path}: {error}") from None

    def save(self, path: Path) -> None:
        """Write the tokens as JSON.

        Args:
            path: where to.
        """
        facts = VOCABULARY_FORMAT.stamp({"tokens": self.tokens})
        path.write_text(json.dumps(facts, ensure_ascii=False, indent=0), encoding="utf-8", newline="\n")

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """Look tokens up; an unknown one becomes `UNK`.

        Args:
            tokens: what to look up.

        Returns:
            One id for each; none is pad, bos or eos.
        """
        return [self._ids.get(token, UNK) for token in tokens]
