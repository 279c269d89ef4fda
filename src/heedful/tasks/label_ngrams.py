"""Linear models of n-grams beside a classifier: fitted before its training, and mixed with it by validation."""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.engines.folder import ModelFolder, commit
from heedful.engines.ngram_model import DEFAULT_SHARE, SHARE, Floats, NgramModel, log_softmax, mixture
from heedful.files.atomic_write import digest
from heedful.tasks.ngram_fit import build_table, fit_ngrams
from heedful.text.ngrams import NgramSizes, is_unspaced

TRAINED: Final = "run/data/ngrams.safetensors"
"""Model of the training texts alone, which validation mixes with the classifier."""
PENALTY: Final = 0.1
"""Half the inverse variance of weights; chosen on folds of six corpora, between 0.03 and 0.3 within 0.5 points."""
MOST_RATIO_LABELS: Final = 12
"""Largest number of labels for which weights are scaled by log-count ratios: they bring 0 to 4 points for 2 to 6
labels, and cost 1 to 9 for 77."""
MOST_CHARACTERS: Final = 600
"""Mean length of texts, in characters, from which on n-grams of characters are left out where words have spaces."""
FITTED_CHARACTERS: Final = 40_000_000
"""Number of characters of the texts that a model is fitted to, spread evenly over all, so that memory is limited."""
SHARES: Final = tuple(number / 10 for number in range(9))
FIRM: Final = 6.0
"""Weight, in nats, of the squared distance between a share and the usual one, for few validation texts."""
ROWS_FOR_SHARE: Final = 15
"""Number of texts a label from which on a classifier without validation texts gets its usual share."""


class Baselines(NamedTuple):
    """Accuracy of simple models on validation texts, in percent."""

    majority: float
    """Accuracy of the most frequent label."""
    ngrams: float
    """Accuracy of the linear model alone."""


class FittedNgrams(NamedTuple):
    """Files of fitted models."""

    name: str
    """Name of the file of the model that is used, in the folder."""
    checksums: dict[str, str]
    baselines: Baselines | None
    """None without validation texts."""


def fit_label_ngrams(
    folder: Path,
    train: tuple[Sequence[str], NDArray[np.int64]],
    dev: tuple[Sequence[str], NDArray[np.int64]],
    is_dev_used: bool,
    num_labels: int,
) -> FittedNgrams:
    """Fit n-gram models: one for validation, to the training texts, and the one that is used, to all texts.

    Args:
        folder: the model's folder.
        train: training texts, and the label of each.
        dev: validation texts, and the label of each, -1 for one that no training text has; may be empty.
        is_dev_used: whether the model that is used is fitted to the validation texts too, after the choice.
        num_labels: number of labels.

    Returns:
        The files, and how good the models are.
    """
    sizes = choose_sizes(train[0])
    has_ratios = num_labels <= MOST_RATIO_LABELS
    model = _fitted(*train, num_labels, sizes, has_ratios)
    (folder / TRAINED).parent.mkdir(parents=True, exist_ok=True)
    model.save(folder / TRAINED)
    used, baselines = model, None
    if len(dev[0]):
        majority = Counter(train[1].tolist()).most_common(1)[0][0]
        scores = model.scores(dev[0])
        shares = (dev[1] == majority).mean(), (scores.argmax(axis=1) == dev[1]).mean()
        baselines = Baselines(*(100.0 * float(share) for share in shares))
        is_known = dev[1] >= 0
        if is_dev_used and is_known.any():
            texts = [*train[0], *(text for text, known in zip(dev[0], is_known, strict=True) if known)]
            used = _fitted(texts, np.concatenate([train[1], dev[1][is_known]]), num_labels, sizes, has_ratios)
    temporary = folder / "ngrams.safetensors"
    used.save(temporary)
    name = f"ngrams-{sha256(temporary.read_bytes()).hexdigest()[:8]}.safetensors"
    temporary.replace(folder / name)
    return FittedNgrams(name, {each: digest(folder / each) for each in (name, TRAINED)}, baselines)


def choose_sizes(texts: Sequence[str]) -> NgramSizes:
    """Choose the n-grams that suit texts: those of characters unless these are long texts of words with spaces."""
    sample = texts[:: max(1, len(texts) // 1000)]
    mean = sum(map(len, sample)) / len(sample)
    if mean <= MOST_CHARACTERS or is_unspaced("".join(text[:200] for text in sample)):
        return NgramSizes()
    return NgramSizes(least_characters=0, most_characters=0)


def _fitted(
    texts: Sequence[str], labels: NDArray[np.int64], num_labels: int, sizes: NgramSizes, has_ratios: bool
) -> NgramModel:
    stride = 1 + sum(map(len, texts)) // FITTED_CHARACTERS
    texts, labels = texts[::stride], labels[::stride]
    table, rows = build_table(texts, num_labels, sizes)
    return fit_ngrams(table, rows, labels, num_labels, PENALTY, has_ratios)


def choose_share(log_probs: Floats, linear: Floats, gold: NDArray[np.int64]) -> float:
    """Choose the share of a classifier in its mixture with a linear model, by the likelihood of labels.

    Args:
        log_probs: [text, label] of the classifier, in nats.
        linear: [text, label] of the linear model, which has not seen the texts.
        gold: [text] labels; -1 = unknown.

    Returns:
        The share, in [0, 0.8].
    """
    rows = np.flatnonzero(gold >= 0)
    if not len(rows):
        return DEFAULT_SHARE
    gold, log_probs, linear = gold[rows], log_probs[rows], linear[rows]
    index = np.arange(len(rows))

    def loss(share: float) -> float:
        likelihood = mixture(log_probs, linear, share)[index, gold].sum(dtype=np.float64)
        return FIRM * (share - DEFAULT_SHARE) ** 2 - float(likelihood)

    return min(SHARES, key=loss)


def usual_share(num_texts: int, num_labels: int) -> float:
    """Return the share of a classifier without validation texts: less for few texts, of which it learns little.

    Args:
        num_texts: number of training texts.
        num_labels: number of labels.

    Returns:
        The share.
    """
    return DEFAULT_SHARE * min(1.0, num_texts / num_labels / ROWS_FOR_SHARE)


def linear_log_probs(model: NgramModel, texts: Sequence[str]) -> Floats:
    """Compute the log probabilities of a linear model.

    Returns:
        [text, label] in nats.
    """
    return log_softmax(model.scores(texts))


def store_share(folder: ModelFolder, share: float) -> None:
    """Store the share of a classifier in its mixture with the linear model of its folder.

    Args:
        share: the share.

    Raises:
        NewerFormat: a newer heedful has written the folder meanwhile.
    """
    others = {key: value for key, value in folder.facts.items() if key not in ("format", "files")}
    commit(folder.path, {**others, SHARE: share}, [*folder.facts["files"]])
