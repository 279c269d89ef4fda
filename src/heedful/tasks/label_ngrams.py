"""Linear models of n-grams beside a classifier: fitted before its training, and mixed with it by validation."""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from heedful.data.label_kinds import LabelKind, decide, log_likelihoods, mixture, normalised
from heedful.engines.folder import ModelFolder, commit
from heedful.engines.ngram_model import DEFAULT_SHARE, SHARE, SHIFTS, Floats, NgramModel, mean_model
from heedful.evaluation.label_sets import SELECTED, label_scores
from heedful.files.atomic_write import digest
from heedful.tasks.ngram_fit import build_table, fit_ngrams
from heedful.text.ngrams import NgramSizes, is_unspaced

TRAINED: Final = "run/data/ngrams.safetensors"
"""Model of the training texts alone, which validation mixes with the classifier."""
PENALTY: Final = 0.1
"""Half the inverse variance of weights; chosen on folds of six corpora, between 0.03 and 0.3 within 0.5 points."""
MOST_RATIO_LABELS: Final = 12
"""Largest number of labels for which one of two fits has weights scaled by log-count ratios, and the scores of both are
averaged: 0.2 to 1.9 points more than without ratios for 2 to 6 labels; ratios cost 1 to 9 points for 77."""
MOST_CHARACTERS: Final = 600
"""Mean length of texts, in characters, from which on n-grams of characters are left out where words have spaces."""
FITTED_CHARACTERS: Final = 40_000_000
"""Number of characters of the texts that a model is fitted to, spread evenly over all, so that memory is limited."""
SHARES: Final = tuple(number / 10 for number in range(9))
FIRM: Final = 6.0
"""Weight, in nats, of the squared distance between a share and the usual one, for few validation texts."""
UNEVEN: Final = 4.0
"""Ratio of the largest to the smallest number of texts of a label from which on labels are uneven."""
LEAST_TEXTS: Final = 5
"""Number of validation texts of each label, at least, for shifts to be chosen."""
TRIED: Final = (0.25, 0.5, 0.75, 1.0)
LEAST_GAIN: Final = 1.0
"""Gain in macro-F1 on validation, in percent, that shifts must bring."""
ROWS_FOR_SHARE: Final = 15
"""Number of texts a label from which on a classifier without validation texts gets its usual share."""


class Baselines(NamedTuple):
    """Scores of simple models on validation texts, of the kind that the best model is chosen by."""

    majority: float
    """Score of the most frequent label; of several, of the best set of frequent ones; of numbers, of their mean."""
    ngrams: float
    """Score of the linear model alone."""


class LabelledRows(NamedTuple):
    """Texts with encoded labels."""

    texts: Sequence[str]
    targets: Floats
    """[text, label] as from `heedful.data.label_kinds.target_rows`; 0 everywhere for an unknown label."""
    labels: Sequence[str]
    """Labels in the order of their ids."""
    values: Sequence[str]
    """Label of each text, a set of labels, or a number."""

    def score(self, kind: LabelKind, log_probs: Floats, other: "LabelledRows") -> float:
        """Score predictions for other texts.

        Args:
            kind: kind of the labels.
            log_probs: [text, label] for the other texts, in nats.
            other: the other texts.
        """
        return label_scores(kind, decide(kind, log_probs, self.labels), other.values)[SELECTED[kind]]


class FittedNgrams(NamedTuple):
    """Files of fitted models."""

    name: str
    """Name of the file of the model that is used, in the folder."""
    checksums: dict[str, str]
    baselines: Baselines | None
    """None without validation texts."""


def _best_constant(shares: Floats) -> Floats:
    """The set of labels that has the best micro-F1 if it is that of each text: the most frequent ones.

    Args:
        shares: [1, label] share of the texts with each label.

    Returns:
        [1, label] 1 for its labels, 0 for others.
    """
    order = np.argsort(-shares[0], kind="stable")
    totals = shares[0][order].cumsum()
    num_labels = 1 + int(np.argmax(totals / (np.arange(1, len(order) + 1) + totals[-1])))
    constant = np.zeros_like(shares)
    constant[0, order[:num_labels]] = 1.0
    return constant


def fit_label_ngrams(
    folder: Path, train: LabelledRows, dev: LabelledRows, is_dev_used: bool, kind: LabelKind
) -> FittedNgrams:
    """Fit n-gram models: one for validation, to the training texts, and the one that is used, to all texts.

    Args:
        folder: the model's folder.
        train: training texts.
        dev: validation texts; may be none.
        is_dev_used: whether the model that is used is fitted to the validation texts too, after the choice.
        kind: kind of the labels.

    Returns:
        The files, and how good the models are.
    """
    sizes = choose_sizes(train.texts)
    model = _fitted(train, sizes, kind)
    (folder / TRAINED).parent.mkdir(parents=True, exist_ok=True)
    model.save(folder / TRAINED)
    used, baselines = model, None
    if len(dev.texts):
        shares = train.targets.mean(axis=0, keepdims=True)
        constant = np.log(np.maximum(_best_constant(shares) if kind == "several" else shares, 1e-9))
        every = constant.repeat(len(dev.texts), axis=0)
        scores = (train.score(kind, own, dev) for own in (every, normalised(kind, model.scores(dev.texts))))
        baselines = Baselines(*scores)
        is_known = dev.targets.sum(axis=1) > 0
        if is_dev_used and is_known.any():
            texts = [*train.texts, *(text for text, known in zip(dev.texts, is_known, strict=True) if known)]
            both = train._replace(texts=texts, targets=np.concatenate([train.targets, dev.targets[is_known]]))
            used = _fitted(both, sizes, kind)
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


def _fitted(rows: LabelledRows, sizes: NgramSizes, kind: LabelKind) -> NgramModel:
    stride = 1 + sum(map(len, rows.texts)) // FITTED_CHARACTERS
    texts, targets = rows.texts[::stride], rows.targets[::stride]
    num_labels = targets.shape[1]
    table, ngrams = build_table(texts, num_labels, sizes)
    fits = (True, False) if num_labels <= MOST_RATIO_LABELS else (False,)
    return mean_model(
        [
            fit_ngrams(table, ngrams, targets, PENALTY, has_ratios, has_label_sets=kind == "several")
            for has_ratios in fits
        ]
    )


def choose_share(kind: LabelKind, log_probs: Floats, linear: Floats, targets: Floats) -> float:
    """Choose the share of a classifier in its mixture with a linear model, by the likelihood of labels.

    Args:
        kind: kind of the labels.
        log_probs: [text, label] of the classifier, in nats.
        linear: [text, label] of the linear model, which has not seen the texts.
        targets: [text, label] right labels, as from `heedful.data.label_kinds.target_rows`; none of an unknown label.

    Returns:
        The share, in [0, 0.8].
    """
    rows = np.flatnonzero((targets.sum(axis=1) > 0) | (kind == "several"))
    if not len(rows):
        return DEFAULT_SHARE
    own, other, gold = log_probs[rows], linear[rows], targets[rows]

    def loss(share: float) -> float:
        likelihood = log_likelihoods(kind, mixture(kind, own, other, share), gold).sum()
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


def linear_log_probs(kind: LabelKind, model: NgramModel, texts: Sequence[str]) -> Floats:
    """Compute the log probabilities of a linear model.

    Args:
        kind: kind of the labels.

    Returns:
        [text, label] in nats.
    """
    return normalised(kind, model.scores(texts))


def choose_shifts(log_probs: Floats, gold: Sequence[str], labels: Sequence[str], counts: Floats) -> Floats | None:
    """Choose how much the logarithm of each label's share is taken from its score, so that rare labels are found.

    Menon et al. 2021, arXiv:2007.07314, section 4.1. Only uneven labels get shifts, and only if macro-F1 gains by them
    more than accuracy loses.

    Args:
        log_probs: [text, label] of validation texts, in nats.
        gold: label of each.
        labels: labels in the order of their ids.
        counts: [label] number of training texts.

    Returns:
        [label] addends of the scores; None = none are needed.
    """
    wanted = Counter(gold)
    if counts.max() < UNEVEN * counts.min() or min(wanted[label] for label in labels) < LEAST_TEXTS:
        return None
    prior = np.log(counts / counts.sum())

    def scores(share: float) -> tuple[float, float]:
        measured = label_scores("one", decide("one", log_probs - share * prior, labels), gold)
        return measured["macro_f1"], measured["accuracy"]

    before = scores(0.0)
    after = {share: scores(share) for share in TRIED}
    gains = {share: (macro - before[0], accuracy - before[1]) for share, (macro, accuracy) in after.items()}
    best = max(gains, key=lambda share: gains[share][0])
    macro, accuracy = gains[best]
    return (-best * prior).astype(np.float32) if macro >= LEAST_GAIN and macro > -2.0 * accuracy else None


def store_share(folder: ModelFolder, share: float, shifts: Floats | None = None) -> None:
    """Store the share of a classifier in its mixture with the linear model of its folder, and shifts of its labels.

    Args:
        share: the share.
        shifts: [label] from `choose_shifts`.

    Raises:
        NewerFormat: a newer heedful has written the folder meanwhile.
    """
    others = {key: value for key, value in folder.facts.items() if key not in ("format", "files")}
    shifted = {} if shifts is None else {SHIFTS: [round(float(shift), 6) for shift in shifts]}
    commit(folder.path, {**others, SHARE: share, **shifted}, [*folder.facts["files"]])
