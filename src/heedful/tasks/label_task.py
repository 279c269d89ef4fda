"""Label tasks: the parts that all tasks share whose result is one label of a closed set, or a span of the source."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from heedful.data.encoded import ENCODED, EncodedCorpus, EncodedSide
from heedful.data.label_batches import LabelSampler, label_batches
from heedful.data.label_kinds import PARTS, LabelKind, decide, encode_label
from heedful.data.prepared_files import is_texts, read_prepared, repaired, verify_files
from heedful.data.pretrained_vectors import Pretrained, check_vectors, read_pretrained
from heedful.data.stories import IMPOSSIBLE
from heedful.engines.label_arrays import Floats
from heedful.engines.labels import BATCH_TOKENS, run_labels
from heedful.engines.ngram_model import NgramModel
from heedful.engines.passages import PassageArrays
from heedful.engines.stories import StoryArrays
from heedful.errors import DataError, FileRefused
from heedful.evaluation.label_sets import label_scores
from heedful.files.formats import PREPARED_FORMAT
from heedful.files.records import read_facts
from heedful.models.device_memory import as_memory_allows
from heedful.models.inputs import INPUTS
from heedful.models.label_model import LabelModel, label_run
from heedful.models.pretrained import place_vectors
from heedful.predictors.interface import Items, spaced
from heedful.predictors.label_predictor import SEPARATOR, TEXT_COLUMNS
from heedful.search.inputs import TokenArrays
from heedful.tasks.experiment import Experiment
from heedful.tasks.interface import FOR_TRANSLATION, DataFile, DataPaths, Prepared, Task
from heedful.tasks.label_files import LABELS
from heedful.tasks.label_ngrams import TRAINED, Baselines
from heedful.text.counts import counted
from heedful.text.label_sets import shown_labels
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.tokenizer_files import load_tokenizer
from heedful.training.label_step import LabelStep
from heedful.training.likelihood import validation_loss
from heedful.training.progress import Validation

BATCH_TEXTS: Final = 128
"""Number of texts in a batch of the validation loss."""


class LabelledItems(Items, Protocol):
    """Evaluation items that have a label each."""

    @property
    def texts(self) -> list[str]:
        """Text of each item, to be shown."""
        ...

    @property
    def labels(self) -> list[str]:
        """Label of each item."""
        ...


@dataclass(frozen=True)
class LabelData(Prepared):
    """Items with labels, ready to train on."""

    tokenizer: Tokenizer
    labels: tuple[str, ...]
    """Labels in alphabetical order; the id of a label is its index. Empty where answers are spans."""
    train: EncodedCorpus
    """Token ids of the items, and the id of the label of each, or the first and the last position of its answer."""
    dev: LabelledItems
    pretrained: tuple[Pretrained, ...] = ()
    """Word vectors that initialise the embedding."""
    ngrams: NgramModel | None = None
    """Linear model of the training texts, with which validation mixes the classifier; None = the task has none."""
    kind: LabelKind = "one"
    """Kind of the labels."""
    baselines: Baselines | None = None
    """Scores of simple models on the validation texts; None = not measured."""


SourceKind = type[TokenArrays] | type[StoryArrays] | type[PassageArrays]
Reader = Callable[[Sequence[Floats]], list[str]]
"""Function from the log probabilities of each item to its predicted label or answer."""
FileT = TypeVar("FileT", bound=DataFile)


class LabelTask(Task[FileT, LabelData]):
    """Task that is learned by a `heedful.models.label_model.LabelModel`."""

    model = LabelModel
    higher_is_better: ClassVar = {
        "loss": False,
        "accuracy": True,
        "macro_f1": True,
        "micro_f1": True,
        "mean_error": False,
        "explained": True,
    }
    without_effect = (
        "text.target_vectors",
        "text.max_training_tokens",
        "images",
        *FOR_TRANSLATION,
        "search",
    )

    def arrays(self, experiment: Experiment) -> SourceKind:
        """Return the kind of the sources of a batch, which are made of the token ids of each item.

        Args:
            experiment: configuration, of which the kind of the model matters.

        Returns:
            The class; by default, texts.
        """
        return TokenArrays

    @property
    def prepared_path(self) -> str:
        """File of the prepared items in a model folder."""
        return f"run/data/{self.name}.json"

    @abstractmethod
    def write_prepared(self, files: Mapping[str, FileT], experiment: Experiment, folder: Path) -> None:
        """Split the data, train a tokenizer and write the encoded items into the folder, with `store_items`.

        Args:
            files: from `find`.
            experiment: configuration, of which the text settings and the kind of the model matter.
            folder: the model's folder.

        Raises:
            DataError: the data are unusable.
        """

    @abstractmethod
    def items(self, stored: Any) -> LabelledItems:
        """Read evaluation items from JSON.

        Args:
            stored: as passed to `store_items`.

        Raises:
            FileRefused: the values are damaged.
        """

    @abstractmethod
    def encode(self, items: Any, tokenizer: Tokenizer, experiment: Experiment) -> list[NDArray[np.int64]]:
        """Encode items.

        Args:
            experiment: configuration, of which the text settings and the kind of the model matter.

        Returns:
            Token ids of each item, of which `arrays` makes batches.
        """

    def targets(self, items: Any, data: LabelData, experiment: Experiment) -> list[list[int]]:
        """Encode the right labels or answers of items.

        Returns:
            Target ids of each item; none for a label that the training data do not have.
        """
        numbers = {label: number for number, label in enumerate(data.labels)}
        return [encode_label(experiment.text.labels, label, numbers) for label in items.labels]

    def reader(self, items: Any, data: LabelData, experiment: Experiment) -> Reader:
        """Return the function that chooses the labels or answers of items.

        Returns:
            The function; by default it chooses the most probable label.
        """
        return lambda log_probs: decide(experiment.text.labels, np.stack(log_probs), data.labels)

    def scores(self, said: Sequence[str], gold: Sequence[str], experiment: Experiment) -> dict[str, float]:
        """Score predicted labels or answers.

        Args:
            said: prediction for each item.

        Returns:
            Scores of `higher_is_better`, in percent.
        """
        return label_scores(experiment.text.labels, said, gold)

    def prepare(self, files: Mapping[str, FileT], experiment: Experiment, folder: Path, paths: DataPaths) -> LabelData:
        text = experiment.text
        check_vectors(text)

        def read_or_make() -> LabelData:
            if not ((folder / self.prepared_path).is_file() and (folder / "run/data" / ENCODED).is_file()):
                self.write_prepared(files, experiment, folder)
            return self._read(folder, text)

        data, damage = repaired(read_or_make, folder)
        return replace(data, report=(*data.report, damage)) if damage else data

    def completed(self, data: LabelData, experiment: Experiment, folder: Path) -> LabelData:
        if not experiment.text.source_vectors:
            return data
        vectors = read_pretrained(
            experiment.text, "source", data.tokenizer, data.train.source, experiment.training.seed
        )
        facts = {**data.facts, "vectors": {"source": str(vectors)}}
        return replace(data, pretrained=(vectors,), facts=facts, report=(*data.report, f"word vectors: {vectors}"))

    def initialize(self, model: nn.Module, data: LabelData) -> None:
        place_vectors(model, data.pretrained)

    def own_validation(self, folder: Path) -> LabelledItems:
        return self.items(read_prepared(folder / self.prepared_path)["dev"])

    def _read(self, folder: Path, config: TextConfig) -> LabelData:
        """Read prepared data.

        Raises:
            FileRefused: a file is missing or damaged.
        """
        path = folder / self.prepared_path
        facts = read_facts(path, PREPARED_FORMAT, "prepare the data again")
        try:
            labels, report, name = facts["labels"], facts["report"], str(facts["tokenizer"])
            dev, test = (self.items(facts[part]) for part in ("dev", "test"))
        except (KeyError, TypeError, FileRefused) as error:
            raise FileRefused(f"{path}: damaged: {error}") from None
        if not all(map(is_texts, (labels, report))):
            raise FileRefused(f"{path}: damaged: its texts are no lists of texts")
        tokenizer = load_tokenizer(folder / name, config.source_units, config.normalization)
        verify_files(folder, facts)  # after the version of the tokenizer, which a newer heedful may have written
        ngrams = facts.get("ngrams")
        most = PARTS + 1 if config.labels == "number" else len(labels) or config.max_tokens
        train = EncodedCorpus.read(folder / "run/data", (len(tokenizer), most))
        named = f", {len(labels):,} labels" if labels else ""
        return LabelData(
            sizes=(len(tokenizer), len(labels)),
            facts={
                "tokenizer": name,
                "labels": LABELS,
                **({"ngrams": str(ngrams)} if ngrams else {}),
                **{key: facts[key] for key in (TEXT_COLUMNS, SEPARATOR, IMPOSSIBLE) if facts.get(key)},
            },
            report=tuple(report),
            num_examples=len(train),
            vocabulary=f"{len(tokenizer):,} {config.source_units}{named}",
            test=test,
            tokenizer=tokenizer,
            labels=tuple(labels),
            train=train,
            dev=dev,
            kind=config.labels,
            ngrams=NgramModel.load(folder / TRAINED) if ngrams else None,
            baselines=Baselines(*map(float, facts["baselines"])) if facts.get("baselines") else None,
        )

    @property
    def poor_scores(self) -> Mapping[str, float]:
        return {"accuracy": 70.0, "macro_f1": 60.0}

    def build_model(self, experiment: Experiment, sizes: tuple[Any, ...]) -> nn.Module:
        model = self._classifier(super().build_model(experiment, sizes))
        model.has_label_sets = experiment.text.labels == "several"
        return model

    def trial_sizes(self, experiment: Experiment) -> tuple[int, ...]:
        return (8, 8)

    def sampler(self, experiment: Experiment, folder: Path, data: LabelData | None) -> LabelSampler:
        corpus = EncodedCorpus.read(folder / "run/data") if data is None else data.train
        training, arrays = experiment.training, self.arrays(experiment)
        return LabelSampler(corpus, training.batch_tokens, training.seed, arrays, training.has_few_shapes)

    def step(self, experiment: Experiment, model: nn.Module) -> LabelStep:
        return self._step(self._classifier(model), experiment, experiment.training.label_smoothing)

    def _step(self, model: LabelModel, experiment: Experiment, label_smoothing: float) -> LabelStep:
        return LabelStep(model, label_smoothing, INPUTS[self.arrays(experiment)], experiment.text.labels)

    def _classifier(self, model: nn.Module) -> LabelModel:
        """Narrow a model to a classifier.

        Raises:
            TypeError: the model is of another kind.
        """
        if not isinstance(model, LabelModel):
            raise TypeError(f"{self.name} is learned by a classifier, got {type(model).__name__}")
        return model

    def validator(self, data: LabelData, experiment: Experiment) -> Callable[[nn.Module], Validation]:
        number = experiment.training.validation_items
        dev = spaced(data.dev, number) if number else data.dev
        texts, gold = dev.texts, dev.labels
        encoded = self.encode(dev, data.tokenizer, experiment)
        targets, read = self.targets(dev, data, experiment), self.reader(dev, data, experiment)
        known = [index for index, ids in enumerate(targets) if ids]
        if not known:
            most = experiment.text.max_tokens
            raise DataError(
                f"validation: none of the {counted(len(gold), 'item')} has an answer that can be learned: each is "
                f"absent from the training data, or beyond text.max_tokens = {most:,}"
            )
        corpus = EncodedCorpus(
            EncodedSide.of([encoded[index].tolist() for index in known]),
            EncodedSide.of([targets[index] for index in known]),
        )
        collect = self.arrays(experiment)
        sources = collect(encoded)
        shown = shown_labels if experiment.text.labels == "several" else str

        def validate(model: nn.Module) -> Validation:
            classifier = self._classifier(model)
            log_probs, *_ = as_memory_allows(
                lambda tokens: run_labels(label_run(classifier), sources, tokens),
                BATCH_TOKENS,
                next(classifier.parameters()).device,
            )
            said = read(log_probs)
            loss = validation_loss(
                self._step(classifier, experiment, 0.0),
                lambda number: label_batches(corpus, collect, number),
                BATCH_TEXTS,
            )
            samples = tuple(zip(texts[:5], map(shown, gold[:5]), map(shown, said[:5]), strict=True))
            scores = {"loss": loss, **self.scores(said, gold, experiment)}
            return Validation(scores, samples[0], samples)

        return validate
