"""Preparation of training data: splits, tokenizers, encoded pairs, and a report.

Results are stored in the run's folder with checksums, so that a second call for the same files reads none of their
pairs; results that are damaged are made again. Memory is constant except for 8 bytes per pair.
"""

import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeGuard, TypeVar, final

from heedful.data.corpus import Pair, PairFile, group_references, split_of
from heedful.data.corpus_filter import CorpusFilter
from heedful.data.corpus_links import link_corpus
from heedful.data.encoded import ENCODED, SIDES, EncodedCorpus, write_encoded
from heedful.data.leakage import SeenPairs, leakage
from heedful.data.same_data import has_begun
from heedful.errors import DataError, FileRefused, NewerFormat
from heedful.files import digest, unfinished
from heedful.formats import PREPARED_FORMAT
from heedful.records import read_facts, write_facts
from heedful.text.dictionary import align_pairs, learn_dictionary
from heedful.text.tokenizer import (
    TextConfig,
    Tokenizer,
    Units,
    UnitTokenizer,
    choose_size,
    train_tokenizer,
)
from heedful.text.tokenizer_files import load_tokenizer
from heedful.text.vocabulary import EOS

Result = TypeVar("Result")

MIN_PAIRS: Final = 10
HELD_OUT_PAIRS: Final = 1000
"""Number of pairs held out for validation and for testing, each; at most a tenth of all pairs."""
TOKENIZER_LINES: Final = 1_000_000
"""Number of lines per side that tokenizers learn from; of a larger corpus, a fixed random sample."""

TOKENIZERS: Final = "run/data/tokenizers.json"
PREPARED: Final = "prepared.json"
"""File of the results of preparation, in `run/data`, with their cache key."""
DICTIONARY: Final = "dictionary.tsv"
LEARNED: Final = "dictionary.json"
"""Record of the dictionary, in `run/data`."""
DICTIONARY_PAIRS: Final = 100_000
"""Number of pairs that a dictionary is learned from; of a larger corpus, a fixed random sample."""
DICTIONARY_PLACES: Final = 8_000_000
"""Largest number of source words times target words of these pairs; takes half a gigabyte of memory."""
SHORT_ITEMS: Final = 20.0
"""Mean number of characters up to which the texts of a corpus count as words, names, dates or numbers."""
SAMPLED_PAIRS: Final = 10_000
"""Number of first pairs that this mean is taken over."""


@dataclass(frozen=True)
class Sources:
    """Data files of a run."""

    train: PairFile
    dev: PairFile | None = None
    test: PairFile | None = None


@dataclass(frozen=True)
class EvaluationSet:
    """Sources with one or more references each."""

    sources: list[str]
    references: list[list[str]]

    def __len__(self) -> int:
        return len(self.sources)

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> "EvaluationSet":
        """Group rows by source.

        Args:
            pairs: rows of an evaluation file; rows with an empty source are left out.

        Returns:
            The set.
        """
        groups = group_references(pair for pair in pairs if pair.source.strip())
        return cls([source for source, _ in groups], [references for _, references in groups])

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> "EvaluationSet":
        """Read a set from JSON values.

        Args:
            facts: the fields.

        Returns:
            The set.

        Raises:
            ValueError: a value is of another kind.
            KeyError: a field is missing.
        """
        sources, references = facts["sources"], facts["references"]
        if not (is_texts(sources) and isinstance(references, list) and all(map(is_texts, references))):
            raise ValueError("sources and references are no lists of texts")
        return cls(sources, references)


def is_texts(value: object) -> TypeGuard[list[str]]:
    """Tell whether a JSON value is a list of texts.

    Args:
        value: the value.

    Returns:
        Whether it is.
    """
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


@final
@dataclass(frozen=True)
class Prepared:
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


@final
class Split:
    """Split of the training file; the shares depend on the number of pairs."""

    def __init__(self, num_pairs: int, has_dev: bool, has_test: bool) -> None:
        """Choose the shares that are held out.

        Args:
            num_pairs: usable pairs of the training file.
            has_dev: whether there is a file for validation.
            has_test: whether there is a file for testing.
        """
        share = min(0.1, HELD_OUT_PAIRS / max(1, num_pairs))
        # Ten pairs are too few to hold any out: validation uses the training pairs, and the report says so.
        self.dev_share = 0.0 if has_dev or num_pairs < 10 * MIN_PAIRS else share
        # A user who gives validation data decides about test data too: none are held out.
        self.test_share = 0.0 if has_test or has_dev or num_pairs < 10 * MIN_PAIRS else share

    def __call__(self, pair: Pair) -> str:
        """Choose the part that a pair belongs to.

        Args:
            pair: of the training file.

        Returns:
            "train", "dev" or "test", a function of the source.
        """
        return split_of(pair.source, self.dev_share, self.test_share)


def prepare(files: Sources, config: TextConfig, folder: Path) -> Prepared:
    """Split the data, learn tokenizers and encode; results of an earlier call are reused.

    Args:
        files: pairs for training and, optionally, validation and testing.
        config: text settings.
        folder: the model folder; encoded pairs go to its `run/data`.

    Returns:
        The prepared data.

    Raises:
        DataError: fewer than 10 usable pairs, or a file is malformed.
    """
    facts = _facts(files, config)

    def read_or_make() -> Prepared:
        if (earlier := _recall(facts, config, folder)) is not None:
            return earlier
        prepared = _prepare(files, config, folder)
        sets = {"dev": vars(prepared.dev), "test": vars(prepared.test)}
        rest = {"tokenizer_files": prepared.tokenizer_files, "report": prepared.report}
        write_facts(folder / "run" / "data" / PREPARED, PREPARED_FORMAT, facts | sets | rest)
        return prepared

    prepared, damage = repaired(read_or_make, folder)
    return replace(prepared, report=(*prepared.report, damage)) if damage else prepared


def repaired(read_or_make: Callable[[], Result], folder: Path) -> tuple[Result, str]:
    """Prepare data, and if stored results of an earlier call are damaged, delete them and prepare again.

    Args:
        read_or_make: function that reads the stored results, or prepares the data.
        folder: the model folder, whose data files are those that its run was begun with (see `claim_data`).

    Returns:
        The result, and a line about the damage; empty if there was none.

    Raises:
        FileRefused: the results are damaged and cannot be made again.
        NewerFormat: a newer heedful wrote them; nothing is changed.
    """
    try:
        return read_or_make(), ""
    except NewerFormat:
        raise
    except FileRefused as error:
        damage = str(error)
    data = folder / "run" / "data"
    for entry in data.iterdir() if data.is_dir() else ():
        if entry.is_dir():
            shutil.rmtree(entry)
        elif entry != folder / TOKENIZERS:  # it has the checksums of tokenizers that a begun training depends on
            entry.unlink()
    return read_or_make(), f"{damage.partition('; ')[0]}; prepared again from the data files"


def _facts(files: Sources, config: TextConfig) -> dict[str, Any]:
    """Cache key: file sizes, mtimes, text settings. Fingerprints catch edits that keep the mtime."""
    parts = {"train": files.train, "dev": files.dev, "test": files.test}
    described = {name: _stamps(file) for name, file in parts.items() if file is not None}
    return {"files": described, "text": config.model_dump(mode="json")}


def _stamps(file: PairFile) -> list[Any]:
    stats = [(path.name, path.stat()) for path in file.paths]
    return [list(file.columns), *([name, stat.st_size, stat.st_mtime_ns] for name, stat in stats)]


def _recall(facts: dict[str, Any], config: TextConfig, folder: Path) -> Prepared | None:
    """Results of an earlier, completed call with the same files.

    Raises:
        FileRefused: they are damaged.
    """
    data = folder / "run" / "data"
    if not ((data / PREPARED).is_file() and (data / ENCODED).is_file()):
        return None
    content = _read_facts(data / PREPARED)
    if any(content.get(name) != facts[name] for name in facts):
        return None
    source, target, names = _load_tokenizers(config, folder)
    try:
        dev, test = (EvaluationSet.read(content[name]) for name in ("dev", "test"))
        names = {str(role): str(name) for role, name in content["tokenizer_files"].items()} | names
        report = tuple(str(line) for line in content["report"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileRefused(f"{data / PREPARED}: damaged: {error}") from None
    if "dictionary" in names:
        verify_files(folder, _read_facts(data / LEARNED))
    train = EncodedCorpus.read(data, (len(source), len(target)))
    return Prepared(source, target, names, train, dev, test, report)


def _prepare(files: Sources, config: TextConfig, folder: Path) -> Prepared:
    corpus_filter = CorpusFilter(config.max_characters)
    num_pairs = sum(1 for _ in corpus_filter.apply(files.train))
    report = corpus_filter.report(files.train.notes)
    if num_pairs < MIN_PAIRS:
        raise DataError(
            f"{files.train.paths[0]}: {report.summary()}; training needs at least {MIN_PAIRS}: give more rows"
        )
    split = Split(num_pairs, files.dev is not None, files.test is not None)
    data = folder / "run" / "data"
    data.mkdir(parents=True, exist_ok=True)
    described = [part.describe() for part in (files.train, files.dev, files.test) if part]
    lines = [*described, *report.notes, report.summary()]
    source_tokenizer, target_tokenizer, names = _tokenizers(files, split, config, num_pairs, folder)
    names |= _dictionary(files, split, config, (source_tokenizer, target_tokenizer), folder)
    num_long = _encode(files, split, config, (source_tokenizer, target_tokenizer), data)
    if num_long:
        lines.append(f"{num_long:,} pairs longer than {config.longest} tokens left out of training")
    train = EncodedCorpus.read(data, (len(source_tokenizer), len(target_tokenizer)))
    if not len(train):
        limit = "text.max_training_tokens" if config.longest < config.max_tokens else "text.max_tokens"
        raise DataError(f"{files.train.paths[0]}: no pair is left for training; raise {limit}")
    dev, test = _held_out(files, split, config)
    lines += _describe(files, split, len(train), dev, test)
    lines += _leaks(files, split, config)
    return Prepared(source_tokenizer, target_tokenizer, names, train, dev, test, tuple(lines))


def link_words(prepared: Prepared, folder: Path) -> Prepared:
    """Align the words of the training pairs, or reuse the links of an earlier call.

    Args:
        prepared: result of `prepare`.
        folder: the model folder; links go to its `run/data/links`.

    Returns:
        The same data, with links of its training pairs.
    """
    tokenizers = (prepared.source_tokenizer, prepared.target_tokenizer)
    train = link_corpus(prepared.train, tokenizers, folder / "run" / "data" / "links")
    num_links = 0 if train.links is None else int(train.links.source.lengths.sum())
    return replace(
        prepared, train=train, report=(*prepared.report, f"{num_links:,} alignment links for guided alignment")
    )


def choose_units(file: PairFile, max_characters: int) -> Units:
    """Choose the units of tokens: characters for short items, whose spelling matters, else pieces.

    Args:
        file: pairs for training.
        max_characters: longer lines are ignored.

    Returns:
        The unit, for both sides.

    Raises:
        DataError: the file is malformed.
    """
    pairs = [*islice(CorpusFilter(max_characters).apply(file), SAMPLED_PAIRS)]
    longer = max(sum(len(pair.source) for pair in pairs), sum(len(pair.target) for pair in pairs))
    return "characters" if 0 < longer <= SHORT_ITEMS * len(pairs) else "pieces"


def _rows(files: Sources, split: Split, config: TextConfig, part: str) -> Iterator[Pair]:
    return (pair for pair in CorpusFilter(config.max_characters).apply(files.train) if split(pair) == part)


def _tokenizers(
    files: Sources, split: Split, config: TextConfig, num_pairs: int, folder: Path
) -> tuple[Tokenizer, Tokenizer, dict[str, str]]:
    units: dict[str, Units] = {"source": config.source_units, "target": config.target_units}
    if (folder / TOKENIZERS).is_file():
        try:
            return _load_tokenizers(config, folder)
        except NewerFormat:
            raise
        except FileRefused:
            pass  # trained again, and compared with those that a begun training depends on
    sample = _sample(_rows(files, split, config, "train"), TOKENIZER_LINES)
    size = config.vocabulary_size or choose_size(num_pairs)
    if config.is_shared:
        lines = [pair.source for pair in sample] + [pair.target for pair in sample]
        shared = train_tokenizer(lines, config.source_units, _limit(size, config.source_units, config), config)
        source, target, stems = shared, shared, ("tokenizer", "tokenizer")
    else:
        sides = {"source": [pair.source for pair in sample], "target": [pair.target for pair in sample]}
        source, target = (train_tokenizer(sides[s], units[s], _limit(size, units[s], config), config) for s in sides)
        stems = ("tokenizer-source", "tokenizer-target")
    made = dict(zip(SIDES, zip((source, target), stems, strict=True), strict=True))
    names, _ = store_tokenizers({f"{side}_tokenizer": value for side, value in made.items()}, folder)
    return source, target, names


def store_tokenizers(
    tokenizers: Mapping[str, tuple[Tokenizer, str]], folder: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Save tokenizers and record their checksums, unless a begun training depends on other tokenizers.

    Args:
        tokenizers: tokenizer and file name without suffix, by role.
        folder: the model folder.

    Returns:
        File names by role, and checksums by file name.

    Raises:
        FileRefused: a training has begun with other tokenizers; nothing is changed.
    """
    known = _known_tokenizers(folder)
    with unfinished(folder / "tokenizers", is_folder=True) as temporary:
        names = {role: tokenizer.save(temporary, stem) for role, (tokenizer, stem) in tokenizers.items()}
        checksums = {name: digest(temporary / name) for name in names.values()}
        for name in checksums if known is not None else ():
            earlier = (known or {}).get(name) or (digest(folder / name) if (folder / name).is_file() else "")
            if earlier != checksums[name]:
                raise FileRefused(
                    f"{folder / name}: missing, damaged or made by another version, and the training depends on it; "
                    "restore it, or delete the folder to start over"
                )
        for name in checksums:
            (temporary / name).replace(folder / name)
    (folder / TOKENIZERS).parent.mkdir(parents=True, exist_ok=True)
    write_facts(folder / TOKENIZERS, PREPARED_FORMAT, {**names, "files": checksums})
    return names, checksums


def _known_tokenizers(folder: Path) -> dict[str, str] | None:
    """Recorded checksums of the tokenizers that a begun training depends on; None if no training has begun."""
    if not has_begun(folder):
        return None
    try:
        return _checksums(_read_facts(folder / TOKENIZERS))
    except FileRefused:
        return {}


def _checksums(facts: Mapping[str, Any]) -> dict[str, str]:
    files = facts.get("files")
    return {str(name): str(value) for name, value in files.items()} if isinstance(files, dict) else {}


def verify_files(folder: Path, facts: Mapping[str, Any]) -> None:
    """Check files against their recorded checksums.

    Args:
        folder: the model folder.
        facts: a record, whose "files" has checksums by file name; records of earlier versions have none.

    Raises:
        FileRefused: a file is missing or damaged.
    """
    for name, recorded in _checksums(facts).items():
        if not (folder / name).is_file() or digest(folder / name) != recorded:
            raise FileRefused(f"{folder / name}: missing or changed since it was written")


def _load_tokenizers(config: TextConfig, folder: Path) -> tuple[Tokenizer, Tokenizer, dict[str, str]]:
    facts = _read_facts(folder / TOKENIZERS)
    verify_files(folder, facts)
    names = {role: str(facts.get(role)) for role in ("source_tokenizer", "target_tokenizer")}
    form = config.normalization
    source = load_tokenizer(folder / names["source_tokenizer"], config.source_units, form)
    return source, load_tokenizer(folder / names["target_tokenizer"], config.target_units, form), names


def _dictionary(
    files: Sources, split: Split, config: TextConfig, tokenizers: tuple[Tokenizer, Tokenizer], folder: Path
) -> dict[str, str]:
    """Learn a dictionary for word models with unknown words, unless it exists already.

    The dictionary is learned before training, so that a model that is stopped early has it too.
    """
    if config.target_units != "words" or config.source_units == "characters":
        return {}
    learned = folder / "run" / "data" / LEARNED
    if learned.is_file() and (folder / DICTIONARY).is_file():
        verify_files(folder, _read_facts(learned))
    else:
        pairs: list[tuple[list[str], list[str]]] = []
        num_places = 0
        for pair in _sample(_rows(files, split, config, "train"), DICTIONARY_PAIRS):
            words = [
                UnitTokenizer.split(tokenizer.normalize(text), "words")
                for tokenizer, text in zip(tokenizers, (pair.source, pair.target), strict=True)
            ]
            num_places += len(words[0]) * len(words[1])
            if num_places > DICTIONARY_PLACES:
                break
            pairs.append((words[0], words[1]))
        learn_dictionary(pairs, align_pairs(pairs)).save(folder / DICTIONARY)
        checksums = {DICTIONARY: digest(folder / DICTIONARY)}
        write_facts(learned, PREPARED_FORMAT, {"num_pairs": len(pairs), "files": checksums})
    return {"dictionary": DICTIONARY}


def _read_facts(path: Path) -> dict[str, Any]:
    """Read a record of `run/data`; one of format 1 may be a bare number of pairs."""
    with suppress(OSError, ValueError):
        return {"num_pairs": int(path.read_bytes())}
    return read_facts(path, PREPARED_FORMAT, "prepare the data again")


def _limit(size: int, units: Units, config: TextConfig) -> int:
    """Largest vocabulary size: `size` for pieces; for characters and words the configured one, by default no limit."""
    return size if units == "pieces" else config.vocabulary_size


def _sample(pairs: Iterator[Pair], size: int) -> list[Pair]:
    """Uniform sample in one pass; Vitter 1985, algorithm R."""
    generator = random.Random(0)
    sample: list[Pair] = []
    for count, pair in enumerate(pairs):
        if count < size:
            sample.append(pair)
        elif (index := generator.randrange(count + 1)) < size:
            sample[index] = pair
    return sample


def _encode(
    files: Sources, split: Split, config: TextConfig, tokenizers: tuple[Tokenizer, Tokenizer], data: Path
) -> int:
    """Encode the training pairs unless that is done already, and count those that are too long.

    Raises:
        FileRefused: the earlier count is damaged.
    """
    counted = data / "too_long.json"
    if (data / ENCODED).is_file() and counted.is_file():
        num_pairs = _read_facts(counted).get("num_pairs")
        if not isinstance(num_pairs, int):
            raise FileRefused(f"{counted}: damaged: states no number of pairs")
        return num_pairs
    source_tokenizer, target_tokenizer = tokenizers
    num_long = 0

    def encoded() -> Iterator[tuple[list[int], list[int]]]:
        nonlocal num_long
        for pair in _rows(files, split, config, "train"):
            source = [*source_tokenizer.encode(pair.source), EOS]
            target = [*target_tokenizer.encode(pair.target), EOS]
            if max(len(source), len(target)) > config.longest:
                num_long += 1
            else:
                yield source, target

    write_encoded(data, encoded(), max(len(source_tokenizer), len(target_tokenizer)))
    write_facts(counted, PREPARED_FORMAT, {"num_pairs": num_long})
    return num_long


def _held_out(files: Sources, split: Split, config: TextConfig) -> tuple[EvaluationSet, EvaluationSet]:
    if files.dev:
        dev = EvaluationSet.of(files.dev)
    else:
        part = "dev" if split.dev_share else "train"
        dev = EvaluationSet.of(_rows(files, split, config, part))
    test = EvaluationSet.of(files.test or _rows(files, split, config, "test"))
    if not len(dev):
        raise DataError("validation: no usable pair; give more rows or a larger --dev file")
    return dev, test


def _describe(files: Sources, split: Split, num_train: int, dev: EvaluationSet, test: EvaluationSet) -> Sequence[str]:
    origin = "" if files.dev or files.test else ", split by a hash of the source"
    counts = f"{num_train:,} pairs for training, {len(dev):,} sources for validation, {len(test):,} for testing"
    lines = [counts + (origin if split.dev_share else "")]
    if not files.dev and not split.dev_share:
        lines.append(
            "too few pairs to hold any out: validation is on the training pairs and says nothing about new ones"
        )
    return lines


def _leaks(files: Sources, split: Split, config: TextConfig) -> Iterator[str]:
    """Report evaluation rows that are in the training pairs; a split of ours has none."""
    evaluation_files = [(name, file) for name, file in (("validation", files.dev), ("test", files.test)) if file]
    if not evaluation_files:
        return
    seen = SeenPairs()
    for _ in seen.watch(_rows(files, split, config, "train")):
        pass
    for name, file in evaluation_files:
        overlap = leakage(seen, file)
        if overlap.num_pairs or overlap.num_sources:
            yield f"{name}: {overlap.summary()}"
