"""Format versions: every kind of file that heedful writes and reads again says its own.

A version goes up when a reader of the one before would go wrong. A key that an older reader may leave out does not
raise it, so unknown keys of a known version are left out. A file of a newer version is refused and stays where it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from heedful.errors import FileRefused, NewerFormat

KEY: Final = "format"
"""The key of the version in files of JSON and TOML."""


@final
@dataclass(frozen=True)
class Format:
    """A kind of file and its versions."""

    name: str
    """The kind of file in a person's words, for messages."""
    version: int = 1
    """The version that is written, and the newest that is read."""
    unmarked: int = 1
    """The version of a file that says none; 0 = every such file says one."""

    def stamp(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Put the version before the content of a file.

        Args:
            facts: content that JSON or TOML can hold.

        Returns:
            The content with the version as its first key.
        """
        return {KEY: self.version, **facts}

    def check(self, path: Path, facts: Mapping[str, Any]) -> int:
        """Read the version of a file, and refuse one that is too new.

        Args:
            path: the file, for messages.
            facts: its content.

        Returns:
            The version, in [1, `version`].

        Raises:
            NewerFormat: the version is above `version`.
            FileRefused: the file says no version that there ever was.
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
        """Check the version of a file and leave it out of the content.

        Args:
            path: the file, for messages.
            facts: its content.

        Returns:
            The content without the version.

        Raises:
            NewerFormat: the version is above `version`.
            FileRefused: the file says no version that there ever was.
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
"""`run/data.json`: fingerprints of the files that a run was begun with."""
PREPARED_FORMAT: Final = Format("prepared data", 2)
"""`run/data/prepared.json`, `tokenizers.json`, `dictionary.json` and `too_long.json`; format 1 held bare numbers in the
last two."""
ENCODED_FORMAT: Final = Format("encoded corpus")
"""`encoded.json`, for the arrays of ids beside it."""
VOCABULARY_FORMAT: Final = Format("vocabulary", 2)
"""The tokens of characters or words, as JSON; format 1 was their bare list."""
MARIAN_TOKENIZER_FORMAT: Final = Format("tokenizer")
"""`*.marian`: a SentencePiece model and the vocabulary that numbers its pieces."""
DICTIONARY_FORMAT: Final = Format("dictionary")
"""`dictionary.tsv`: its first line says the version."""
SHARDS_FORMAT: Final = Format("folder of outputs")
"""`shards.json` of many translated files."""
COMPARISON_FORMAT: Final = Format("comparison")
"""`items.json`, `table.json` and `findings/*.json` of a comparison."""
