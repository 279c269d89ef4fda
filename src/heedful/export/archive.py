"""Archive of a model for JavaScript: its description with the tokenizers, and its graphs, in one compressed file.

The package in `heedful/js` reads it. The file is a tar archive in gzip, so that every language has a reader for it; it
contains `model.json`, `encode.onnx` and `step.onnx`, and on demand `layers.onnx`. The same model gives the same bytes.
"""

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from heedful.engines.folder import ModelFolder
from heedful.engines.onnx_layers import LAYERS
from heedful.errors import MissingExtra, UsageError
from heedful.export.half import half_weights
from heedful.search.config import SearchConfig
from heedful.text.sentences import ABBREVIATIONS, STREETS
from heedful.text.tokenizer import PieceTokenizer, TextConfig, Tokenizer, UnitTokenizer
from heedful.version import __version__

DESCRIPTION: Final = "model.json"
GRAPHS: Final = ("encode.onnx", "step.onnx")
FORMAT: Final = 1
"""Version of the archive, which `js/index.js` checks."""
SETTINGS: Final = (
    "beam",
    "nbest",
    "length_penalty",
    "alpha",
    "length_reward",
    "beta",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "max_length_ratio",
    "max_length_offset",
    "min_length",
    "forbid_unknown",
    "stopping",
)
"""Settings of a search that the package in JavaScript follows."""


@final
@dataclass(frozen=True)
class ArchivedModel:
    """Model that is archived: everything that its description says."""

    folder: ModelFolder
    tokenizers: tuple[Tokenizer, Tokenizer]
    """Tokenizers of source and target."""
    text: TextConfig
    search: SearchConfig

    @property
    def usual(self) -> int:
        """Number of sentences that the model usually saw in a line; 0 = it reads lines whole, as if of characters."""
        units = self.text.source_units, self.text.target_units
        return 0 if "characters" in units or self.text.cut_sources else int(self.folder.facts.get("sentences", 1))

    def check(self) -> None:
        """Refuse a model that JavaScript would run differently.

        Raises:
            UsageError: it has settings that the package in JavaScript does not have.
        """
        faults = {
            "its texts are folded": self.text.normalization == "folded",
            "it reads documents": self.text.split_sentences,
            "it reads several columns": bool(self.text.source_columns),
            "its search draws samples": self.search.method != "beam",
            "its beam has groups": self.search.num_groups > 1,
            "its unknown words are replaced": self.search.replace_unknown,
            "its tokenizer is that of a Marian model": not all(
                isinstance(one, PieceTokenizer | UnitTokenizer) for one in self.tokenizers
            ),
        }
        for fault, is_there in faults.items():
            if is_there:
                raise UsageError(
                    f"{self.folder.path}: {fault}, which JavaScript cannot do yet; use heedful serve, or --to onnx"
                )

    def description(self) -> dict[str, Any]:
        """Describe the model.

        Returns:
            Values that JSON can hold; none of them is a text of the user.
        """
        source, target = (described(one) for one in self.tokenizers)
        dumped = self.search.model_dump(mode="json")
        return {
            "format": FORMAT,
            "heedful": __version__,
            "task": self.folder.task,
            "name": self.folder.path.resolve().name,
            "kind": str(self.folder.facts.get("kind", "")),
            "languages": list(self.folder.facts.get("languages", ("", ""))),
            "max_tokens": self.text.max_tokens,
            "search": {name: dumped[name] for name in SETTINGS},
            "sentences": {"usual": self.usual, "abbreviations": sorted(ABBREVIATIONS), "streets": STREETS},
            "source_tokenizer": source,
            "target_tokenizer": None if source == target else target,
        }


def write_archive(model: ArchivedModel, engine: Path, is_half: bool, has_layers: bool = False) -> bytes:
    """Write the archive of a model.

    Args:
        engine: folder of the model's graphs, as `heedful.export.onnx` writes them.
        has_layers: whether the graph of the attention of every layer and head is in it too.
        is_half: whether weights are stored in 16 bits; they are computed with in 32 bits.

    Returns:
        The bytes of the archive.

    Raises:
        UsageError: JavaScript would run the model differently, or its graphs have a vocabulary shortlist.
        MissingExtra: the package that changes graphs is not installed.
    """
    model.check()
    if (engine / "output.onnx").exists():
        raise UsageError(f"{engine}: has a vocabulary shortlist; export the model again without --shortlist")
    description = json.dumps(model.description(), ensure_ascii=False, separators=(",", ":"))
    names = (*GRAPHS, LAYERS) if has_layers else GRAPHS
    graphs = {name: (engine / name).read_bytes() for name in names}
    if is_half:
        try:
            graphs = {name: half_weights(graph) for name, graph in graphs.items()}
        except ModuleNotFoundError as error:
            raise MissingExtra(str(error.name), "train", "weights in 16 bits") from None
    return compressed({DESCRIPTION: description.encode(), **graphs})


def compressed(files: Mapping[str, bytes]) -> bytes:
    """Write files as a tar archive in gzip.

    Args:
        files: contents by name.

    Returns:
        The bytes, the same for the same files.
    """
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(tar.getvalue(), 9, mtime=0)


def described(tokenizer: Tokenizer) -> dict[str, Any]:
    """Describe a tokenizer of pieces, characters or words.

    Returns:
        Values that JSON can hold, as `js/tokenizers.js` reads them.

    Raises:
        TypeError: it is another kind of tokenizer.
    """
    if isinstance(tokenizer, UnitTokenizer):
        tokens = list(tokenizer.vocabulary.tokens)
        return {"units": tokenizer.units, "normalization": tokenizer.normalization, "tokens": tokens}
    if not isinstance(tokenizer, PieceTokenizer):
        raise TypeError(f"{type(tokenizer).__name__} has no description")
    return {
        "units": "pieces",
        "normalization": tokenizer.normalization,
        "tokens": tokenizer.pieces(range(len(tokenizer))),
        "scores": tokenizer.scores(),
        "bytes": tokenizer.unknown_ids()[1:],
    }
