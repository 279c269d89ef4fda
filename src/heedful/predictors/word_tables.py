"""Tables of words in a model's folder, loaded on first use: usual forms of source words, and a lexicon."""

from functools import cached_property
from typing import Final, final

from heedful.engines.folder import ModelFolder
from heedful.text.lexicon import Lexicon
from heedful.text.tokenizer import Tokenizer
from heedful.text.word_forms import WordForms


@final
class WordTables:
    """Tables of words that a model has; models of other tools and of earlier versions have none."""

    def __init__(self, folder: ModelFolder, tokenizer: Tokenizer, target_tokenizer: Tokenizer) -> None:
        """Name the folder; no file is read yet.

        Args:
            tokenizer: tokenizer of the sources.
            target_tokenizer: tokenizer of the targets.
        """
        self._folder: Final = folder
        self._tokenizer: Final = tokenizer
        self._target_tokenizer: Final = target_tokenizer

    @cached_property
    def forms(self) -> WordForms:
        """Usual forms of the words of sources; empty where the model has none."""
        if "forms" in self._folder.facts:
            return WordForms.load(self._folder.file("forms"), self._tokenizer)
        return WordForms((), self._tokenizer)

    @cached_property
    def lexicon(self) -> Lexicon | None:
        """Associations of source and target words; None where the model has none."""
        return Lexicon.load(self._folder.file("lexicon")) if "lexicon" in self._folder.facts else None

    def is_name(self, word: str) -> bool:
        """True for a target word that takes fewer tokens with its capital than without, such as nouns of German."""
        encode = self._target_tokenizer.encode
        return len(encode(word)) < len(encode(word[:1].lower() + word[1:]))

    @property
    def final_marks(self) -> tuple[str, str]:
        """Marks that sources and targets end in; empty where many have none."""
        # A model of an earlier version does not tell; where its sources begin with capitals, they end in marks.
        is_written = len(self.forms) > 0 and self.forms.has_capitals
        source, target = self._folder.facts.get("final_marks", (".", ".") if is_written else ("", ""))
        return str(source), str(target)
