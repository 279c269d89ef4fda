"""Archive of a model for JavaScript: its description with the tokenizers, and its graphs, in one compressed file.

The package in `heedful/js` reads it. The file is a tar archive in gzip, so that every language has a reader for it; it
contains `model.json` and the graphs of the model's engine; of a translator `encode.onnx` and `step.onnx`, and on demand
`layers.onnx`. The same model gives the same bytes.
"""

import base64
import gzip
import io
import json
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from heedful.engines.folder import ModelFolder
from heedful.engines.onnx_layers import LAYERS
from heedful.engines.pack import CARD
from heedful.errors import MissingExtra, UsageError
from heedful.export.javascript_patterns import javascript_pattern
from heedful.export.stored_weights import Part, WeightKind, shared, stored
from heedful.search.config import SearchConfig
from heedful.text.folding import folding_tables
from heedful.text.kept import kept_rules, known_scripts
from heedful.text.marian import MarianTokenizer
from heedful.text.scripts import script_table
from heedful.text.sentencepiece_file import UNIGRAM, PieceKind, read_pieces
from heedful.text.sentences import sentence_rules
from heedful.text.tokenizer import PieceTokenizer, TextConfig, Tokenizer, UnitTokenizer
from heedful.version import __version__

DESCRIPTION: Final = "model.json"
GRAPHS: Final = ("encode.onnx", "step.onnx")
TABLES: Final = {"forms": "forms.txt", "lexicon": "lexicon.tsv"}
"""Files of tables of words, by their roles in the model's folder."""
FORMAT: Final = 3
"""Version of the archive, which `js/load.js` checks. Since 2, graphs may share parts; since 3, translators have
the rules of segments and kept spans."""
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


class ArchivedModel(ABC):
    """Model that is archived: everything that its description says."""

    folder: ModelFolder
    text: TextConfig

    @abstractmethod
    def check(self) -> None:
        """Refuse a model that JavaScript would run differently.

        Raises:
            UsageError: it has settings that the package in JavaScript does not have.
        """

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Describe what the models of this task have.

        Returns:
            Values that JSON can hold; none of them is a text of the user.
        """

    @abstractmethod
    def graphs(self, engine: Path) -> tuple[str, ...]:
        """List the graphs of the model.

        Args:
            engine: folder of the graphs.

        Returns:
            Names of files.

        Raises:
            UsageError: the graphs are of a kind that JavaScript does not run.
        """

    def files(self) -> dict[str, bytes]:
        """Return further files of the archive by name."""
        return {}

    def description(self) -> dict[str, Any]:
        """Describe the model.

        Returns:
            Values that JSON can hold; none of them is a text of the user.
        """
        return {
            "format": FORMAT,
            "heedful": __version__,
            "task": self.folder.task,
            "name": self.folder.path.resolve().name,
            "kind": str(self.folder.facts.get("kind", "")),
            "languages": list(self.folder.facts.get("languages", ("", ""))),
            "max_tokens": self.text.max_tokens,
            **self.facts(),
        }


@final
@dataclass(frozen=True)
class ArchivedTranslator(ArchivedModel):
    """Translator that is archived."""

    folder: ModelFolder
    tokenizers: tuple[Tokenizer, Tokenizer]
    """Tokenizers of source and target."""
    text: TextConfig
    search: SearchConfig
    alignment_shift: int = 0
    """Number of steps between the one that predicts a token and the one whose attention aligns it."""
    has_layers: bool = False
    """Whether the graph of the attention of every layer and head is archived too."""

    def check(self) -> None:
        faults = {
            "it reads documents": self.text.split_sentences,
            "it reads several columns": bool(self.text.source_columns),
            "its unknown words are replaced": self.search.replace_unknown,
            "its tokenizer is of a kind of its own": not all(map(has_description, self.tokenizers)),
        }
        refuse(self.folder, faults | search_faults(self.search))

    def graphs(self, engine: Path) -> tuple[str, ...]:
        if (engine / "output.onnx").exists():
            raise UsageError(f"{engine}: has a vocabulary shortlist; export the model again without --shortlist")
        return (*GRAPHS, LAYERS) if self.has_layers else GRAPHS

    def facts(self) -> dict[str, Any]:
        source, target = (described(one) for one in self.tokenizers)
        dumped = self.search.model_dump(mode="json")
        return {
            "search": {name: dumped[name] for name in SETTINGS},
            "segments": self._segments(),
            "source_tokenizer": source,
            "target_tokenizer": None if source == target else target,
            "folding": folding(self.text),
        }

    def files(self) -> dict[str, bytes]:
        roles = {role: name for role, name in TABLES.items() if self.text.reads_sentences and role in self.folder.facts}
        return {name: self.folder.file(role).read_bytes() for role, name in roles.items()}

    def _segments(self) -> dict[str, Any]:
        """Describe what the model reads at once, and what it keeps."""
        facts: dict[str, Any] = {
            "is_whole": self.text.reads_whole,
            "reads_sentences": self.text.reads_sentences,
            "usual": int(self.folder.facts.get("sentences", 1)),
            "usual_characters": self.folder.facts.get("usual_characters"),
            "openings": self.folder.facts.get("openings", []),
            "final_marks": self.folder.facts.get("final_marks"),
            "alignment_shift": self.alignment_shift,
        }
        if not self.text.reads_sentences:
            return facts
        source, _ = self.tokenizers
        kinds = self.folder.facts.get("kept", kept_rules())
        rules = {kind: javascript_pattern(pattern) for kind, pattern in kept_rules().items() if kind in kinds}
        known = sorted(known_scripts(source.pieces(range(len(source)))))
        tables = {"rules": sentence_facts(), "kept": {"rules": rules, "known": known}, "scripts": script_table()}
        return facts | tables


def sentence_facts() -> dict[str, Any]:
    """List the rules of sentences as JavaScript reads them."""
    rules = sentence_rules()
    patterns = {name: javascript_pattern(pattern) for name, pattern in rules["patterns"].items()}
    return rules | {"patterns": patterns, "words": {name: sorted(words) for name, words in rules["words"].items()}}


def search_faults(search: SearchConfig) -> dict[str, bool]:
    """List what JavaScript does not search with, and whether a model's own settings have it."""
    return {"its search draws samples": search.method != "beam", "its beam has groups": search.num_groups > 1}


def refuse(folder: ModelFolder, faults: Mapping[str, bool]) -> None:
    """Refuse a model that JavaScript would run differently.

    Args:
        faults: by what is said of the model, whether it is so.

    Raises:
        UsageError: one of them is.
    """
    for fault, is_there in faults.items():
        if is_there:
            raise UsageError(f"{folder.path}: {fault}, which JavaScript cannot do yet; use heedful serve, or --to onnx")


def folding(text: TextConfig, is_needed: bool = False) -> dict[str, Any] | None:
    """Describe how texts are folded.

    Args:
        is_needed: whether they are in any case.

    Returns:
        Tables of characters; None where texts are not folded.
    """
    if text.normalization != "folded" and not is_needed:
        return None
    replaced, cased = folding_tables()
    return {"replaced": replaced, "cased": cased}


def write_archive(model: ArchivedModel, engine: Path, weights: WeightKind, card: str = "") -> bytes:
    """Write the archive of a model.

    Args:
        engine: folder of the model's graphs, as `heedful.export.onnx` writes them.
        weights: how weights are stored; they are computed with in 32 bits.
        card: text of the model card, which becomes README.md; empty = none.

    Returns:
        The bytes of the archive.

    Raises:
        UsageError: JavaScript would run the model or its graphs differently.
        MissingExtra: the package that changes graphs is not installed.
    """
    model.check()
    graphs = {name: (engine / name).read_bytes() for name in model.graphs(engine)}
    parts: dict[str, list[Part]] = {}
    try:
        if weights != "float32":
            graphs, parts = shared({name: stored(graph, weights) for name, graph in graphs.items()})
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "train", f"weights as {weights}") from None
    description = json.dumps(model.description() | {"parts": parts}, ensure_ascii=False, separators=(",", ":"))
    cards = {CARD: card.encode()} if card else {}
    return compressed({DESCRIPTION: description.encode(), **cards, **graphs, **model.files()})


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


def has_description(tokenizer: Tokenizer) -> bool:
    """Tell whether JavaScript has a twin of a tokenizer."""
    if not isinstance(tokenizer, MarianTokenizer):
        return isinstance(tokenizer, PieceTokenizer | UnitTokenizer)
    model = read_pieces(tokenizer.model)
    is_usual = model.kind == UNIGRAM and model.marks_spaces and not model.is_suffix
    return is_usual and all(kind is not PieceKind.USER_DEFINED for _, _, kind in model.pieces)


def _marian(tokenizer: MarianTokenizer) -> dict[str, Any]:
    """Describe a tokenizer of a Marian model."""
    model = read_pieces(tokenizer.model)
    names = {kind: [piece for piece, _, other in model.pieces if other is kind] for kind in PieceKind}
    return {
        "units": "marian",
        "normalization": tokenizer.normalization,
        "tokens": list(tokenizer.vocabulary.tokens),
        "pieces": [(piece, score) for piece, score, kind in model.pieces if kind is PieceKind.NORMAL],
        "control": names[PieceKind.CONTROL],
        "unknown": names[PieceKind.UNKNOWN][0],
        "has_bytes": bool(names[PieceKind.BYTE]),
        "has_prefix": model.has_prefix,
        "merges_spaces": model.merges_spaces,
        "charsmap": base64.b64encode(model.charsmap).decode("ascii"),
    }


def described(tokenizer: Tokenizer) -> dict[str, Any]:
    """Describe a tokenizer of pieces, characters or words, or of a Marian model.

    Returns:
        Values that JSON can hold, as `js/tokenizers.js` reads them.

    Raises:
        TypeError: it is another kind of tokenizer.
    """
    if isinstance(tokenizer, UnitTokenizer):
        tokens = list(tokenizer.vocabulary.tokens)
        facts = {"units": tokenizer.units, "normalization": tokenizer.normalization, "tokens": tokens}
        return facts | ({"reads_forms": True} if tokenizer.letters else {})
    if isinstance(tokenizer, MarianTokenizer):
        return _marian(tokenizer)
    if not isinstance(tokenizer, PieceTokenizer):
        raise TypeError(f"{type(tokenizer).__name__} has no description")
    return {
        "units": "pieces",
        "normalization": tokenizer.normalization,
        "tokens": tokenizer.pieces(range(len(tokenizer))),
        "scores": tokenizer.scores(),
        "bytes": tokenizer.unknown_ids()[1:],
    }
