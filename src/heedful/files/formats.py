"""Format versions: every kind of file that heedful writes and reads again carries a version of its own.

A version is raised when a reader of the previous version would misread the file. A new key that an older reader may
ignore does not raise the version, so readers ignore unknown keys. A file of a newer version is refused and left
unchanged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from heedful.errors import FileRefused, NewerFormat

KEY: Final = "format"
"""Key of the version in JSON and TOML files."""


@final
@dataclass(frozen=True)
class Format:
    """File format and its versions."""

    name: str
    """Name of the format in messages."""
    version: int = 1
    """Version that is written, and the newest version that is read."""
    unmarked: int = 1
    """Version of a file that does not state one; 0 = every file states its version."""

    def stamp(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Add the version to the content of a file.

        Args:
            facts: content that JSON or TOML can represent.

        Returns:
            The content with the version as its first key.
        """
        return {KEY: self.version, **facts}

    def check(self, path: Path, facts: Mapping[str, Any]) -> int:
        """Read the version of a file, and refuse a newer version than this heedful reads.

        Returns:
            The version, in [1, `version`].

        Raises:
            NewerFormat: the version is above `version`.
            FileRefused: the version is missing or is not a positive integer.
        """
        version = facts.get(KEY, self.unmarked)
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise FileRefused(f"{path}: {self.name} format {version!r} is no version; copy the file again")
        if version > self.version:
            raise NewerFormat(
                f"{path}: made by a newer heedful ({self.name} format {version}; this one reads up to {self.version}); "
                "update heedful"
            )
        return version

    def strip(self, path: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Check the version of a file, and remove it from the content.

        Returns:
            The content without the version.

        Raises:
            NewerFormat: the version is above `version`.
            FileRefused: the version is missing or is not a positive integer.
        """
        self.check(path, facts)
        return {key: value for key, value in facts.items() if key != KEY}


MODEL_FORMAT: Final = Format("model", unmarked=0)
"""`heedful.json` of a model folder."""
SETTINGS_FORMAT: Final = Format("configuration")
"""`config.toml` of a model folder and `run/experiment.toml`."""
ENGINE_FORMAT: Final = Format("engine", unmarked=0)
"""`engines/NAME/engine.json`."""
CHECKPOINT_FORMAT: Final = Format("checkpoint", 2)
"""`manifest.json` of a checkpoint, for all of its files; see `heedful.training.checkpoint_formats`."""
METRICS_FORMAT: Final = Format("metrics")
"""Each line of `run/metrics.jsonl`."""
HISTORY_FORMAT: Final = Format("history")
"""Each line of `run/history.jsonl`."""
TEST_SCORES_FORMAT: Final = Format("test scores")
"""`run/test.json`."""
DATA_FORMAT: Final = Format("data")
"""`run/data.json`: fingerprints of the data files that a run was started with."""
PREPARED_FORMAT: Final = Format("prepared data", 2)
"""`run/data/prepared.json`, `tokenizers.json`, `dictionary.json` and `too_long.json`; in format 1 the last two were
bare numbers."""
ENCODED_FORMAT: Final = Format("encoded corpus")
"""`encoded.json`, which describes the arrays of token ids beside it."""
VOCABULARY_FORMAT: Final = Format("vocabulary", 2)
"""Vocabulary of a character or word tokenizer, as JSON; format 1 was the bare list of tokens."""
COLUMNS_FORMAT: Final = Format("tokenizer of columns", unmarked=0)
"""`*.columns`: the tokenizer of sources of several columns, as JSON."""
MARIAN_TOKENIZER_FORMAT: Final = Format("tokenizer")
"""`*.marian`: a SentencePiece model and the vocabulary that assigns ids to its pieces."""
NGRAMS_FORMAT: Final = Format("n-gram model", unmarked=0)
"""`ngrams-*.safetensors` of a classifier's folder, in its metadata."""
DICTIONARY_FORMAT: Final = Format("dictionary")
"""`dictionary.tsv`, whose first line states the version."""
WORD_FORMS_FORMAT: Final = Format("word forms")
"""`forms.txt` of a model folder, whose first line states the version."""
LEXICON_FORMAT: Final = Format("lexicon")
"""`lexicon.tsv` of a model folder, whose first line states the version."""
SHARDS_FORMAT: Final = Format("folder of outputs")
"""`shards.json` of a folder of translated files."""
CONFIDENCE_FORMAT: Final = Format("confidence", unmarked=0)
"""`confidence-*.json` of a model folder."""
CORRECTIONS_FORMAT: Final = Format("corrections", unmarked=0)
"""Each line of `corrections.jsonl`."""
COMPARISON_FORMAT: Final = Format("comparison")
"""`items.json`, `table.json` and `findings/*.json` of a comparison."""
