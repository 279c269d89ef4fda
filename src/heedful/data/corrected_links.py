"""Word links that people corrected: a file of pairs, and the token links that they give to training pairs.

Each line has source words, target words and the links between them in Pharaoh format, separated by tabs. The page and
`heedful serve --links` write such files.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.tables import fingerprint_table, table_identity
from heedful.data.word_spans import Span, spell, spell_words, tokens_of
from heedful.errors import DataError
from heedful.text.lines import read_lines
from heedful.text.links import Links, parse_pharaoh
from heedful.text.text_files import check_file
from heedful.text.tokenizer import Tokenizer

TokenLinks = tuple[list[int], list[int]]
"""Source position and target position of each link between tokens."""
Tokenizers = tuple[Tokenizer, Tokenizer]


@final
class CorrectedLinks:
    """File of corrected word links; construct by its path."""

    def __init__(self, path: Path) -> None:
        """Check that the file exists.

        Args:
            path: the file, gzip or not.

        Raises:
            DataError: it does not exist, or is no file of text.
        """
        check_file(path)
        self.path: Final = path

    def identity(self) -> tuple[Any, ...]:
        """Return values that change whenever the content changes."""
        return table_identity(self.path)

    def fingerprint(self) -> dict[str, Any]:
        """Describe the content so that any change is detected.

        Returns:
            "files": name, size, sha256 and number of lines. JSON can hold it.
        """
        return {"files": [fingerprint_table(self.path)]}

    def of_corpus(self, corpus: EncodedCorpus, tokenizers: Tokenizers) -> dict[int, TokenLinks]:
        """Find the pairs of the file in a corpus, by their text without spaces.

        A link between two words links all their tokens. A token belongs to each word that it shares a character with;
        a space, to the word after it. Of several lines about one pair the last counts.

        Returns:
            The token links by index of the pair.

        Raises:
            DataError: a line is no pair with links; the message names file:line.

        Cost: one reading of the corpus.
        """
        corrected = self._read(tokenizers)
        sources = {source for source, _ in corrected}
        texts = [_Texts(*side) for side in zip((corpus.source, corpus.target), tokenizers, strict=True)]
        token_links: dict[int, TokenLinks] = {}
        for index in range(len(corpus)):
            source, source_tokens = texts[0].spans(index)
            if source not in sources:
                continue
            target, target_tokens = texts[1].spans(index)
            if (pair := corrected.get((source, target))) is not None:
                source_words, target_words, links = pair
                linked = {
                    (s, t)
                    for left, right in links
                    for s in tokens_of(source_words[left], source_tokens)
                    for t in tokens_of(target_words[right], target_tokens)
                }
                token_links[index] = [s for s, _ in sorted(linked)], [t for _, t in sorted(linked)]
        return token_links

    def _read(self, tokenizers: Tokenizers) -> Mapping[tuple[str, str], tuple[list[Span], list[Span], Links]]:
        corrected: dict[tuple[str, str], tuple[list[Span], list[Span], Links]] = {}
        for number, line in enumerate(read_lines(self.path, nul="refuse"), 1):
            where = f"{self.path}:{number}"
            if not line.strip():
                continue
            cells = line.split("\t")
            if len(cells) != 3:
                problem = f"{len(cells)} column{'' if len(cells) == 1 else 's'}"
                raise DataError(f"{where}: {problem}; expected source words, target words and links such as 0-0 1-2")
            (source, source_words), (target, target_words) = (
                spell_words(cell, tokenizer) for cell, tokenizer in zip(cells, tokenizers, strict=False)
            )
            links = parse_pharaoh(cells[2], where=where)
            for left, right in links:
                if left >= len(source_words) or right >= len(target_words):
                    sizes = f"{len(source_words)} source and {len(target_words)} target words"
                    raise DataError(f"{where}: link {left}-{right} leads out of its {sizes}; count words from 0")
            corrected[source, target] = source_words, target_words, links
        return corrected


@final
class _Texts:
    """Texts of one side of a corpus, without spaces, and the characters of their tokens."""

    def __init__(self, side: EncodedSide, tokenizer: Tokenizer) -> None:
        self._side: Final = side
        self._pieces: Final = tokenizer.pieces(range(len(tokenizer)))

    def spans(self, index: int) -> tuple[str, list[Span]]:
        """Text of a sequence, and the span of each token but EOS."""
        return spell([self._pieces[token] for token in self._side[index].tolist()[:-1]])
