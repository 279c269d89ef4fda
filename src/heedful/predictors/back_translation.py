"""Back-translation: training pairs whose sources are made from target texts by a model of the other direction.

Sennrich et al. 2016, P16-1009. The outputs of a beam search become the sources, which suits small data better than
samples (Edunov et al. 2018, D18-1045, section 5.2). A tag before each tells the model that a machine wrote it (Caswell
et al. 2019, W19-5206), so that it learns the targets from them, but not the machine's source language.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from heedful.data.corpus import PairFile, find_pairs
from heedful.data.pair_rows import tsv_lines
from heedful.data.prepare import EvaluationSet
from heedful.errors import DataError
from heedful.files.atomic_write import atomic_write
from heedful.predictors.distillation import DEV, SPACES, Sources, held_out_items, translated_pairs
from heedful.predictors.translator import Translator
from heedful.text.counts import counted

TAG: Final = "\u27f2"
"""Token before a source that a machine wrote: a single character that texts do not contain."""
REVERSE_SHARE: Final = 0.25
"""Share of a limited time in which the model of the other direction is trained."""
REAL: Final = "pairs.tsv"
TEST: Final = "test.tsv"
MIXED: Final = "train.tsv"
REVERSE: Final = "reverse.model"
OUTPUTS: Final = "sources"


@final
@dataclass(frozen=True)
class RealPairs:
    """Files of the pairs that people wrote, with columns source and target."""

    train: Path
    dev: Path
    test: Path | None
    references: frozenset[str]
    """Targets of validation and test, which no training may see."""


def store_pairs(train: PairFile, dev: PairFile | None, test: PairFile | None, folder: Path) -> RealPairs:
    """Write the real pairs in one form, with a validation set of their own.

    Args:
        dev: validation set; None = one source in twenty is held out.
        test: test set, if there is one.
        folder: folder of the files, created if it does not exist.

    Returns:
        The files. A file that has its content already is left alone, so that a training of it resumes.

    Raises:
        DataError: a file is malformed or has no row.
        OSError: the disk is full or refuses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    items = EvaluationSet.of(dev) if dev else held_out_items(EvaluationSet.of(train))
    tested = EvaluationSet.of(test) if test else None
    held_out = frozenset() if dev else frozenset(items.sources)
    _write(folder / REAL, [(pair.source, pair.target) for pair in train if pair.source not in held_out])
    _write(folder / DEV, _pairs(items))
    if tested:
        _write(folder / TEST, _pairs(tested))
    sets = [items, *([tested] if tested else [])]
    references = frozenset(
        text.translate(SPACES).strip() for each in sets for texts in each.references for text in texts
    )
    return RealPairs(folder / REAL, folder / DEV, folder / TEST if tested else None, references)


def select_texts(lines: Iterable[str], references: frozenset[str]) -> list[str]:
    """Select the texts that are worth translating back.

    Returns:
        Each text once, in their order.

    Raises:
        DataError: there is none.
    """
    texts = [text for text in dict.fromkeys(line.translate(SPACES).strip() for line in lines) if text]
    selected = [text for text in texts if text not in references]
    if not selected:
        reason = "every line is a reference of the validation or test set" if texts else "it has no text"
        raise DataError(f"--monolingual: {reason}; give text in the target language, one sentence a line")
    return selected


def mix_pairs(
    reverse: Translator, texts: Sequence[str], real: RealPairs, folder: Path, say: Callable[[str], None]
) -> Path:
    """Translate texts back, and write them behind the real pairs.

    Args:
        reverse: model from the target language to the source language; its own search settings hold.
        texts: result of `select_texts`.
        folder: their folder. Outputs are written shard by shard, so that a killed run goes on behind the last one.
        say: callback for lines about the progress.

    Raises:
        UsageError: the folder was begun with other texts or another model.
        OSError: the disk is full or refuses.
    """
    sources = Sources([*texts], EvaluationSet([], []))
    pairs = [*translated_pairs(reverse, sources, folder / OUTPUTS, say)]
    real_pairs = [(pair.source, pair.target) for pair in find_pairs([real.train], (1, 2))]
    _write(folder / MIXED, [*real_pairs, *((f"{TAG} {output}", text) for text, output in pairs)])
    say(f"{counted(len(pairs), 'text')} translated back, behind the pairs of {real.train}; tagged {TAG}")
    return folder / MIXED


def _pairs(items: EvaluationSet) -> list[tuple[str, str]]:
    sets = zip(items.sources, items.references, strict=True)
    return [(source, text) for source, references in sets for text in references]


def _write(path: Path, pairs: Sequence[tuple[str, str]]) -> None:
    """Write a file of pairs, unless it has this content."""
    content = "".join(tsv_lines(pairs))
    if not path.is_file() or path.read_text(encoding="utf-8") != content:
        with atomic_write(path, is_internal=True) as stream:
            stream.write(content)
