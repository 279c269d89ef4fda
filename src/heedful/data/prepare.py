"""Preparation of training data: splits, tokenizers, encoded pairs, and a report.

Results are stored in the run's folder with checksums, so that a second call for the same files reads none of their
pairs; results that are damaged are made again. Memory is constant except for 8 bytes per pair.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple, final

from heedful.data.corpus import SHORT_ITEMS, Pair, PairFile, group_references
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.corpus_links import link_corpus
from heedful.data.corrected_links import CorrectedLinks
from heedful.data.corrections import Correction, CorrectionJournal
from heedful.data.encoded import ENCODED, EncodedCorpus, write_encoded
from heedful.data.first_reading import FirstReading
from heedful.data.leakage import TrainingIndex, describe_leaks
from heedful.data.prepared_dictionary import DICTIONARY_PAIRS, store_dictionary, verify_dictionary
from heedful.data.prepared_files import is_texts, read_prepared, repaired
from heedful.data.prepared_tokenizers import learn_tokenizers, named_tokenizers, sampled
from heedful.data.read_ahead import read_ahead
from heedful.data.split import Split, on_training
from heedful.errors import DataError, FileRefused
from heedful.files.atomic_write import digest
from heedful.files.formats import PREPARED_FORMAT
from heedful.files.records import write_facts
from heedful.text.columns import text_columns
from heedful.text.counts import counted
from heedful.text.encoding import encode_texts
from heedful.text.pronunciations import are_in_ipa
from heedful.text.tokenizer import (
    TextConfig,
    Tokenizer,
    Units,
)
from heedful.text.vocabulary import EOS
from heedful.text.word_alignment import AlignmentModel

PREPARED: Final = "prepared.json"
"""File of the results of preparation, in `run/data`, with their cache key."""
SAMPLED_PAIRS: Final = 10_000
"""Number of first pairs that this mean is taken over."""
SINGLE_WORDS: Final = 0.95
"""Least share of sources that are single words, where targets are symbols."""
SYMBOLS: Final = 2.0
"""Least mean number of symbols of a target."""
SYMBOL_CHARACTERS: Final = 3.0
"""Largest mean number of characters of a symbol."""
FEW_PRONUNCIATIONS: Final = 10_000
"""Largest number of pairs that are learned by hard attention by default; it was measured on 800."""


@dataclass(frozen=True)
class Sources:
    """Data files of a run."""

    train: PairFile
    dev: PairFile | None = None
    test: PairFile | None = None
    journal: Path | None = None
    """Journal of corrections that are training pairs too."""


@dataclass(frozen=True)
class EvaluationSet:
    """Sources with one or more references each.

    Example:
        >>> items = EvaluationSet(["Guten Tag", "Danke"], [["Good day", "Hello"], ["Thanks"]])
        >>> len(items), items[1:].sources
        (2, ['Danke'])
    """

    sources: list[str]
    """The sources."""
    references: list[list[str]]
    """References of each source, one at least."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Lines about rows that were left out as unreadable."""

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, selection: slice) -> "EvaluationSet":
        return replace(self, sources=self.sources[selection], references=self.references[selection])

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> "EvaluationSet":
        """Group rows by source.

        Args:
            pairs: rows of an evaluation file; rows with an empty source are left out.
        """
        groups = group_references(pair for pair in pairs if pair.source.strip())
        return cls([source for source, _ in groups], [references for _, references in groups])

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> "EvaluationSet":
        """Read a set from JSON values.

        Raises:
            ValueError: a value is of another kind.
            KeyError: a field is missing.
        """
        sources, references = facts["sources"], facts["references"]
        if not (is_texts(sources) and isinstance(references, list) and all(map(is_texts, references))):
            raise ValueError("sources and references are no lists of texts")
        return cls(sources, references)


@final
@dataclass(frozen=True)
class PreparedPairs:
    """Prepared training data."""

    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    tokenizer_files: dict[str, str]
    """File names in the model folder by role: tokenizers, and the dictionary if there is one."""
    train: EncodedCorpus
    dev: EvaluationSet
    test: EvaluationSet
    report: tuple[str, ...]
    """Lines for a person: numbers of pairs kept, left out, held out, duplicated."""


def prepare(files: Sources, config: TextConfig, folder: Path) -> PreparedPairs:
    """Split the data, learn tokenizers and encode; results of an earlier call are reused.

    Args:
        files: pairs for training and, optionally, validation and testing.
        folder: the model folder; encoded pairs go to its `run/data`.

    Raises:
        DataError: fewer than 10 usable pairs, or a file is malformed.
    """
    facts = _facts(files, config)

    def read_or_make() -> PreparedPairs:
        if (earlier := _recall(facts, config, folder)) is not None:
            return earlier
        prepared = _prepare(files, config, folder)
        sets = {"dev": vars(prepared.dev), "test": vars(prepared.test)}
        rest = {"tokenizer_files": prepared.tokenizer_files, "report": prepared.report}
        write_facts(folder / "run" / "data" / PREPARED, PREPARED_FORMAT, facts | sets | rest)
        return prepared

    prepared, damage = repaired(read_or_make, folder)
    return replace(prepared, report=(*prepared.report, damage)) if damage else prepared


def _facts(files: Sources, config: TextConfig) -> dict[str, Any]:
    """Cache key: file sizes, mtimes, text settings. Fingerprints catch edits that keep the mtime."""
    parts = {"train": files.train, "dev": files.dev, "test": files.test}
    described = {name: _stamps(file) for name, file in parts.items() if file is not None}
    if files.journal:
        described["journal"] = [digest(files.journal)]
    return {"files": described, "text": config.model_dump(mode="json")}


def _stamps(file: PairFile) -> list[Any]:
    stats = [(path.name, path.stat()) for path in file.paths]
    return [list(file.columns), *([name, stat.st_size, stat.st_mtime_ns] for name, stat in stats)]


def _recall(facts: dict[str, Any], config: TextConfig, folder: Path) -> PreparedPairs | None:
    """Results of an earlier, completed call with the same files.

    Raises:
        FileRefused: they are damaged.
    """
    data = folder / "run" / "data"
    if not ((data / PREPARED).is_file() and (data / ENCODED).is_file()):
        return None
    content = read_prepared(data / PREPARED)
    if any(content.get(name) != facts[name] for name in facts):
        return None
    source, target, names = named_tokenizers(config, folder)
    try:
        dev, test = (EvaluationSet.read(content[name]) for name in ("dev", "test"))
        names = {str(role): str(name) for role, name in content["tokenizer_files"].items()} | names
        report = tuple(str(line) for line in content["report"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileRefused(f"{data / PREPARED}: damaged: {error}") from None
    if "dictionary" in names:
        verify_dictionary(folder)
    train = EncodedCorpus.read(data, (len(source), len(target)))
    return PreparedPairs(source, target, names, train, dev, test, report)


def _prepare(files: Sources, config: TextConfig, folder: Path) -> PreparedPairs:
    first = FirstReading(files.train, config.max_characters, files.dev is not None, files.test is not None)
    report, split = first.report, first.split
    data = folder / "run" / "data"
    data.mkdir(parents=True, exist_ok=True)
    described = [part.describe() for part in (files.train, files.dev, files.test) if part]
    lines = [*described, *report.notes, report.summary()]
    source_tokenizer, target_tokenizer, names = learn_tokenizers(first.sample, config, report.num_different, folder)
    if config.target_units == "words" and config.source_units != "characters" and not config.source_columns:
        # Before training, so that a model that is stopped early has a dictionary too.
        pairs = sampled(iter(first.sample), DICTIONARY_PAIRS)
        names |= store_dictionary(pairs, source_tokenizer, target_tokenizer, folder)
    dev, test = _held_out(files, first)
    del first  # the pairs of its sample need memory that encoding would share
    # Where nothing is held out, validation is on the training pairs.
    held_out = {*dev.sources, *test.sources} if files.dev or split.dev_share else {*test.sources}
    corrections, error = _corrections(files, source_tokenizer, held_out)
    evaluation = {name: pairs for name, pairs in (("validation", files.dev), ("test", files.test)) if pairs}
    index = TrainingIndex() if evaluation else None
    training = partial(_rows, files.train, split, config, index)
    num_long, num_cut = _encode(training, corrections, config, (source_tokenizer, target_tokenizer), data)
    if error:
        lines.append(error)
    if corrections:
        lines.append(f"{counted(len(corrections), 'correction')} added to the training pairs")
    if num_long:
        lines.append(f"{counted(num_long, 'pair')} longer than {config.longest} tokens left out of training")
    if num_cut:
        lines.append(f"{counted(num_cut, 'source')} cut after {config.longest} tokens, as in use")
    train = EncodedCorpus.read(data, (len(source_tokenizer), len(target_tokenizer)))
    if not len(train):
        limit = "text.max_training_tokens" if config.longest < config.max_tokens else "text.max_tokens"
        raise DataError(f"{files.train.paths[0]}: no pair is left for training; raise {limit}")
    lines += _describe(files, split, len(train), dev, test)
    if index is not None:
        if not len(index):  # an earlier call has encoded the pairs
            for _ in training():
                pass
        lines += describe_leaks(index, evaluation)
    return PreparedPairs(source_tokenizer, target_tokenizer, names, train, dev, test, tuple(lines))


def link_words(
    prepared: PreparedPairs, folder: Path, model: AlignmentModel = "ibm1", corrections: CorrectedLinks | None = None
) -> PreparedPairs:
    """Align the words of the training pairs, or reuse the links of an earlier call.

    Args:
        prepared: result of `prepare`.
        folder: the model folder; links go to its `run/data/links`.

    Returns:
        The same data, with links of its training pairs.

    Raises:
        DataError: the corrections are malformed.
    """
    tokenizers = prepared.source_tokenizer, prepared.target_tokenizer
    corrected = corrections.of_corpus(prepared.train, tokenizers) if corrections else {}
    train = link_corpus(prepared.train, tokenizers, folder / "run" / "data" / "links", model, corrected)
    num_links = 0 if train.links is None else int(train.links.source.lengths.sum())
    report = [*prepared.report, f"{num_links:,} alignment links for guided alignment"]
    if corrections:
        report.append(f"{corrections.path}: corrected links of {counted(len(corrected), 'training pair')}")
    return replace(prepared, train=train, report=tuple(report))


def choose_units(file: PairFile, max_characters: int) -> Units:
    """Choose the units of tokens: characters for short items, whose spelling matters, else pieces.

    Args:
        max_characters: longer lines are ignored.

    Returns:
        The unit, for both sides.

    Raises:
        DataError: the file is malformed.
    """
    pairs = [*islice(CorpusFilter(max_characters).apply(file), SAMPLED_PAIRS)]
    sources = [text_columns(pair.source, file.source_kinds) for pair in pairs]
    longer = max(sum(map(len, sources)), sum(len(pair.target) for pair in pairs))
    return "characters" if 0 < longer <= SHORT_ITEMS * len(pairs) else "pieces"


@final
class PronunciationPairs(NamedTuple):
    """Pairs of words and their pronunciations."""

    has_spaces: bool
    """True where phones stand between spaces, as in CMUdict; false for the IPA, where each letter is a token."""
    are_few: bool
    """True for at most `FEW_PRONUNCIATIONS` pairs."""


def find_pronunciations(file: PairFile, max_characters: int) -> PronunciationPairs | None:
    """Tell whether targets are pronunciations of words.

    Args:
        max_characters: longer lines are ignored.

    Returns:
        None unless most sources are single words, and targets have several tokens of few characters each, or are in
        the IPA.

    Raises:
        DataError: the file is malformed.
    """
    rows = iter(CorpusFilter(max_characters).apply(file))
    pairs = [*islice(rows, SAMPLED_PAIRS)]
    sources = [text_columns(pair.source, file.source_kinds).strip() for pair in pairs]
    targets = [pair.target for pair in pairs]
    has_spaces = _are_symbols(sources, targets)
    if not (has_spaces or are_in_ipa(sources, targets)):
        return None
    num_pairs = len(pairs) + sum(1 for _ in islice(rows, FEW_PRONUNCIATIONS))
    return PronunciationPairs(has_spaces, num_pairs <= FEW_PRONUNCIATIONS)


def _are_symbols(sources: Sequence[str], targets: Sequence[str]) -> bool:
    """True for single words whose targets are several symbols with spaces between them."""
    tokens = [token for target in targets for token in target.split(" ")]
    num_words = sum(" " not in source for source in sources)
    if num_words < SINGLE_WORDS * len(sources) or len(tokens) < SYMBOLS * len(targets):
        return False
    return sum(map(len, tokens)) <= SYMBOL_CHARACTERS * len(tokens)


def _rows(file: PairFile, split: Split, config: TextConfig, index: TrainingIndex | None) -> Iterator[Pair]:
    """Training pairs of a file, which are added to the index where there is one."""
    corpus_filter = CorpusFilter(config.max_characters, keeps_repeats=True)
    rows = (pair for pair in corpus_filter.apply(file) if split(pair) == "train")
    return rows if index is None else index.watch(rows)


def _corrections(files: Sources, tokenizer: Tokenizer, held_out: Set[str]) -> tuple[Sequence[Correction], str]:
    """Corrections in force of sources that are not held out, and a line about damage.

    Raises:
        FileRefused: the journal is no file, or was written by a newer heedful.
    """
    if files.journal is None:
        return (), ""
    journal = CorrectionJournal(files.journal, tokenizer.normalize)
    held_out_keys = {*map(journal.key, held_out)}
    content = journal.read()
    learned = [one for one in content.corrections if journal.key(one.source) not in held_out_keys]
    return learned, content.error(journal.path)


def _encode(
    training: Callable[[], Iterator[Pair]],
    corrections: Sequence[Correction],
    config: TextConfig,
    tokenizers: tuple[Tokenizer, Tokenizer],
    data: Path,
) -> tuple[int, int]:
    """Encode the training pairs, corrections last, unless that is done already.

    Returns:
        Number of pairs that were too long, and number of sources that were cut.

    Raises:
        FileRefused: the earlier counts are damaged.
    """
    counted, num_long, num_cut = data / "too_long.json", 0, 0
    if (data / ENCODED).is_file() and counted.is_file():
        facts = read_prepared(counted)
        num_pairs, num_sources = facts.get("num_pairs"), facts.get("num_cut", 0)
        if not (isinstance(num_pairs, int) and isinstance(num_sources, int)):
            raise FileRefused(f"{counted}: damaged: states no number of pairs")
        return num_pairs, num_sources
    source_tokenizer, target_tokenizer = tokenizers

    def encoded() -> Iterator[tuple[list[int], list[int]]]:
        nonlocal num_long, num_cut
        rows = ((pair.source, pair.target) for pair in training())
        for block in read_ahead(chain(rows, ((one.source, one.correction) for one in corrections))):
            sources = encode_texts(source_tokenizer, [source for source, _ in block], config.split_sentences)
            targets = target_tokenizer.encode_all([target for _, target in block])
            for source, target in zip(sources, targets, strict=True):
                if config.cut_sources and len(source) >= config.longest:
                    num_cut += 1
                    del source[config.longest - 1 :]
                if max(len(source), len(target)) >= config.longest:
                    num_long += 1
                else:
                    yield [*source, EOS], [*target, EOS]

    write_encoded(data, encoded(), max(len(source_tokenizer), len(target_tokenizer)))
    write_facts(counted, PREPARED_FORMAT, {"num_pairs": num_long, "num_cut": num_cut})
    return num_long, num_cut


def _held_out(files: Sources, first: FirstReading) -> tuple[EvaluationSet, EvaluationSet]:
    dev = EvaluationSet.of(files.dev or first.held_out("dev" if first.split.dev_share else "train"))
    test = EvaluationSet.of(files.test or first.held_out("test"))
    if not len(dev):
        raise DataError("validation: no usable pair; give more rows or a larger --dev file")
    return dev, test


def _describe(files: Sources, split: Split, num_train: int, dev: EvaluationSet, test: EvaluationSet) -> Sequence[str]:
    origin = "" if files.dev or files.test else ", split by a hash of the source"
    held_out = f"{counted(len(dev), 'source')} for validation, {len(test):,} for testing"
    counts = f"{counted(num_train, 'pair')} for training, {held_out}"
    lines = [counts + (origin if split.dev_share else "")]
    if not files.dev and not split.dev_share:
        lines.append(f"too few pairs to hold any out: {on_training('pairs')}")
    return lines
