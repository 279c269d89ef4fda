"""Seen sources: the commonest target of each training source, used where validation shows that it helps."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING, Final

from heedful.data.encoded import EncodedCorpus
from heedful.engines.folder import ModelFolder, commit
from heedful.errors import DataError, FileRefused, ResourceError, UsageError
from heedful.files.atomic_write import digest
from heedful.predictors.corrected import Align, replaced
from heedful.predictors.translation import Alternative, Translation
from heedful.text.counts import counted
from heedful.text.dictionary import Dictionary, Entry
from heedful.text.tokenizer import Tokenizer
from heedful.text.vocabulary import UNK

if TYPE_CHECKING:
    from heedful.data.prepare import EvaluationSet

ROLE: Final = "seen"
"""Key of the file of seen sources in `heedful.json`."""
LEAST_SEEN: Final = 20
"""Smallest number of validation sources by which their use is decided."""
_MOST_COMPARED: Final = 1000
Translate = Callable[[Sequence[str]], Iterable[Translation]]
"""Function that translates sources by the model alone."""


def count_targets(corpus: EncodedCorpus, tokenizers: tuple[Tokenizer, Tokenizer]) -> Dictionary:
    """Find the commonest target of each source.

    Args:
        corpus: training pairs, as often as they occur.
        tokenizers: of source and target.

    Returns:
        Targets by source, in its normal form; of equally common ones the first. Pairs with unknown tokens, whose text
        cannot be restored, and those that no table can represent are left out.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for index in range(len(corpus)):
        ids = corpus.source[index][:-1].tolist(), corpus.target[index][:-1].tolist()
        if UNK not in (*ids[0], *ids[1]):
            counts[tokenizers[0].decode(ids[0])][tokenizers[1].decode(ids[1])] += 1
    entries: dict[str, Entry] = {}
    for source, targets in counts.items():
        target, count = max(targets.items(), key=lambda item: item[1])
        try:
            entries |= Dictionary({source: Entry(target, count / targets.total(), count)}).entries
        except DataError:
            continue
    return Dictionary(entries)


def stored_targets(folder: ModelFolder, tokenizers: tuple[Tokenizer, Tokenizer]) -> Dictionary:
    """Read the seen sources of a model, or count them in its training pairs.

    Raises:
        UsageError: the folder has neither.
        FileRefused: they are damaged.
    """
    if ROLE in folder.facts:
        return Dictionary.load(folder.file(ROLE))
    try:
        return count_targets(EncodedCorpus.read(folder.path / "run/data"), tokenizers)
    except FileRefused as error:
        if (folder.path / "run/data").is_dir():
            raise
        raise UsageError(f"{folder.path}: its training pairs are not there, so no source was seen") from error


def with_targets(
    outputs: Iterable[Translation],
    seen: Dictionary,
    normalize: Callable[[str], str],
    nbest: int,
    align: Align | None,
) -> Iterator[Translation]:
    """Replace the outputs of seen sources by their commonest targets.

    Args:
        normalize: function that gives the normal form of a source.
        nbest: largest number of alternatives.
        align: aligns a source with its target; None where no attention is needed.

    Yields:
        Each translation. The log probability of a target is that of its share among the targets of its source.
    """
    for one in outputs:
        entry = seen.entries.get(normalize(one.source))
        if entry is None:
            yield one
        else:
            best = Alternative(entry.target, log(entry.probability), log(entry.probability))
            yield replace(replaced(one, best, nbest, align), unbiased=one.text, was_cut=one.was_cut)


def choose_seen(
    folder: ModelFolder,
    corpus: EncodedCorpus,
    tokenizers: tuple[Tokenizer, Tokenizer],
    items: "EvaluationSet",
    translate: Translate,
) -> str:
    """Store the seen sources of a model if their commonest targets are right more often than its own outputs.

    Args:
        corpus: training pairs.
        items: validation items.
        translate: function that translates by the model alone.

    Returns:
        A line about the choice; empty if too few validation sources were seen.

    Raises:
        ResourceError: the folder cannot be written.
    """
    seen, normalize = count_targets(corpus, tokenizers), tokenizers[0].normalize
    keys = [normalize(source) for source in items.sources]
    known = [index for index, key in enumerate(keys) if key in seen]
    if len(known) < LEAST_SEEN:
        return ""
    known = known[:: 1 + (len(known) - 1) // _MOST_COMPARED]
    references = [items.references[index] for index in known]
    own = [one.text for one in translate([items.sources[index] for index in known])]
    commonest = [seen.entries[keys[index]].target for index in known]
    num_right = [
        sum(text in right for text, right in zip(texts, references, strict=True)) for texts in (own, commonest)
    ]
    alone, by_table = (f"{100.0 * number / len(known):.1f} %" for number in num_right)
    figures = (
        f"of {counted(len(known), 'validation source')} seen in training the commonest targets have {by_table} right"
    )
    if num_right[1] <= num_right[0]:
        return f"memory: not used; {figures}, the model {alone}"
    _store(folder, seen)
    return f"memory: used, {counted(len(seen), 'source')}; {figures}, the model {alone}; without it: --no-memory"


def _store(folder: ModelFolder, seen: Dictionary) -> None:
    """Write a file with a name of its own, then the manifest.

    Raises:
        ResourceError: the folder cannot be written.
    """
    try:
        temporary = folder.path / "seen.tsv.part"
        seen.save(temporary)
        name = f"seen-{digest(temporary)[:8]}.tsv"
        temporary.replace(folder.path / name)
        others = {key: value for key, value in folder.facts.items() if key not in ("format", "files")}
        commit(folder.path, {**others, ROLE: name}, [*folder.facts["files"], name])
    except OSError as error:
        raise ResourceError(f"{folder.path}: no memory stored: {error.strerror or error}") from None
