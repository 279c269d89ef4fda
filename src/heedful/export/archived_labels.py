"""Archives of classifiers and of models that answer questions, for JavaScript."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, final

from heedful.data.stories import IMPOSSIBLE
from heedful.engines.documents import SENTENCES, WORDS
from heedful.engines.folder import ModelFolder
from heedful.engines.labels import GRAPH
from heedful.engines.ngram_model import DEFAULT_SHARE, NGRAMS, SHARE, SHIFTS, NgramModel
from heedful.engines.spans import NO_ANSWER_SHIFT
from heedful.errors import UsageError
from heedful.export.archive import ArchivedModel, described, folding, refuse, sentence_facts
from heedful.export.javascript_patterns import javascript_pattern
from heedful.text.ngrams import WORD
from heedful.text.scripts import unspaced_ranges
from heedful.text.tokenizer import PieceTokenizer, TextConfig, Tokenizer, UnitTokenizer

NGRAMS_FILE: Final = "ngrams.safetensors"


@final
@dataclass(frozen=True)
class ArchivedLabels(ArchivedModel):
    """Classifier, or model that answers questions, that is archived."""

    folder: ModelFolder
    tokenizer: Tokenizer
    text: TextConfig
    labels: tuple[str, ...]
    """None where answers are spans."""
    separator: str = ""
    """Separator of several labels in an output."""
    ngrams: NgramModel | None = None

    def check(self) -> None:
        is_known = isinstance(self.tokenizer, PieceTokenizer | UnitTokenizer)
        refuse(
            self.folder,
            {
                "it reads several columns": bool(self.text.source_columns),
                "its tokenizer is of a kind of its own": not is_known,
            },
        )

    def graphs(self, engine: Path) -> tuple[str, ...]:
        names = (WORDS, SENTENCES) if (engine / WORDS).is_file() else (GRAPH,)
        if not (engine / names[0]).is_file():
            raise UsageError(f"{engine}: has no graph of a label model; export the model again")
        return names

    def files(self) -> dict[str, bytes]:
        return {NGRAMS_FILE: self.folder.file(NGRAMS).read_bytes()} if self.ngrams is not None else {}

    def facts(self) -> dict[str, Any]:
        linear = self.ngrams and {
            "sizes": asdict(self.ngrams.table.sizes),
            "word": javascript_pattern(WORD),
            "share": float(self.folder.facts.get(SHARE, DEFAULT_SHARE)),
        }
        return {
            "tokenizer": described(self.tokenizer),
            "labels": list(self.labels),
            "label_kind": self.text.labels,
            "separator": self.separator,
            "rules": sentence_facts() if self.text.split_sentences else None,
            "unspaced": unspaced_ranges(),
            "ngrams": linear,
            "shifts": self.folder.facts.get(SHIFTS),
            "has_impossible": self.folder.facts.get(IMPOSSIBLE) is True,
            "no_answer_shift": float(self.folder.facts.get(NO_ANSWER_SHIFT, 0.0)),
            "folding": folding(self.text, self.ngrams is not None),
        }
