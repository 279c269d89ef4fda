"""Fit of linear models of n-grams: the optimum that scikit-learn finds, and log-count ratios."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from torch.nn import functional

from heedful.data.label_kinds import normalised, target_rows
from heedful.engines.ngram_model import NgramRows, mean_model
from heedful.evaluation.label_sets import score_sets
from heedful.tasks import ngram_fit
from heedful.tasks.label_ngrams import LabelledRows, fit_label_ngrams
from heedful.tasks.ngram_fit import build_table, fit_ngrams
from heedful.text.label_sets import joined_labels
from heedful.text.ngrams import NgramSizes
from tests.tasks.reviews import BAD, GOOD


def texts_and_labels(number: int = 120) -> tuple[list[str], np.ndarray]:
    generator = np.random.default_rng(3)
    texts: list[str] = []
    labels = generator.integers(0, 3, number)
    for label in labels:
        words = generator.choice([*GOOD, *BAD] if label == 2 else GOOD if label else BAD, 3)
        texts.append(f"the room was {' and '.join(words)}")
    return texts, labels.astype(np.int64)


def test_rows_of_the_table_are_those_of_any_text():
    texts, _ = texts_and_labels()
    table, rows = build_table(texts, 3, NgramSizes())
    again = table.rows(texts)
    assert np.array_equal(rows.columns, again.columns)
    assert np.array_equal(rows.starts, again.starts)
    np.testing.assert_allclose(rows.values, again.values, rtol=1e-6)


def test_the_most_frequent_ngrams_are_kept(monkeypatch: pytest.MonkeyPatch):
    texts, _ = texts_and_labels()
    monkeypatch.setattr(ngram_fit, "MOST_WEIGHTS", 30)
    table, _ = build_table(texts, 3, NgramSizes())
    assert len(table.hashes) == 10
    assert table.rarity.max() < 1.1  # in nearly all texts


def test_the_fit_is_that_of_scikit_learn():
    texts, labels = texts_and_labels()
    table, rows = build_table(texts, 3, NgramSizes())
    own = normalised(
        "one", fit_ngrams(table, rows, target_rows("one", labels, 3), penalty=0.5, most_steps=300).scores_of(rows)
    )
    matrix = csr_matrix((rows.values, rows.columns, rows.starts), (len(texts), len(table.hashes)))
    peer = LogisticRegression(C=2.0, max_iter=2000, tol=1e-8).fit(matrix, labels)
    wanted = peer.predict_log_proba(matrix)
    assert float(np.abs(own - wanted).max()) < 0.02
    other = LogisticRegression(C=1.0, max_iter=2000, tol=1e-8).fit(matrix, labels).predict_log_proba(matrix)
    assert float(np.abs(other - wanted).max()) > 0.05  # another penalty is seen


def objective(rows: NgramRows, labels: np.ndarray, scale: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor):
    matrix = torch.from_numpy(
        csr_matrix((rows.values, rows.columns, rows.starts), (len(labels), len(weights))).toarray()
    ).double()
    loss = functional.cross_entropy(matrix @ (weights * scale) + bias, torch.from_numpy(labels), reduction="sum")
    return loss + 0.25 * weights.square().sum()


def test_ratios_scale_the_weights():
    texts, labels = texts_and_labels(60)
    table, rows = build_table(texts, 3, NgramSizes())
    fitted = fit_ngrams(table, rows, target_rows("one", labels, 3), penalty=0.5, has_ratios=True, most_steps=500)
    counts = np.zeros((len(table.hashes), 3))
    owners = np.repeat(np.arange(len(texts)), np.diff(rows.starts))
    np.add.at(counts, (rows.columns, labels[owners]), 1.0)
    inside, outside = counts + 1.0, counts.sum(axis=1, keepdims=True) - counts + 1.0
    scale = torch.from_numpy(np.log(inside / inside.sum(axis=0)) - np.log(outside / outside.sum(axis=0)))
    weights = (torch.from_numpy(fitted.weights.astype(np.float64)) / scale).requires_grad_()
    bias = torch.from_numpy(fitted.bias.astype(np.float64)).requires_grad_()
    objective(rows, labels, scale, weights, bias).backward()
    at_zero = torch.zeros_like(weights, requires_grad=True)
    objective(rows, labels, scale, at_zero, torch.zeros(3, dtype=torch.float64)).backward()
    assert weights.grad is not None
    assert at_zero.grad is not None
    assert float(weights.grad.norm()) < 0.01 * float(at_zero.grad.norm())


def test_the_mean_of_models_has_the_mean_of_their_scores():
    texts, labels = texts_and_labels(60)
    table, rows = build_table(texts, 3, NgramSizes())
    models = [fit_ngrams(table, rows, target_rows("one", labels, 3), has_ratios=ratios) for ratios in (True, False)]
    wanted = np.mean([model.scores_of(rows) for model in models], axis=0)
    np.testing.assert_allclose(mean_model(models).scores_of(rows), wanted, rtol=1e-4, atol=1e-5)
    assert float(np.abs(models[0].scores_of(rows) - wanted).max()) > 0.01


def test_the_simplest_model_of_several_labels_gives_the_most_frequent_ones(tmp_path: Path):
    labels = [f"l{number}" for number in range(10)]
    owners = [(number % 10, 3) for number in range(40)]
    targets = np.zeros((40, 10), dtype=np.float32)
    for row, own in enumerate(owners):
        targets[row, [*own]] = float(row % 3 == 1)
    values = [joined_labels(labels[index] for index in np.flatnonzero(row)) for row in targets]
    rows = LabelledRows([f"text {number}" for number in range(40)], targets, labels, values)
    fitted = fit_label_ngrams(tmp_path, rows, rows, False, "several")
    assert fitted.baselines is not None
    wanted = score_sets([labels[3]] * 40, values).micro_f1
    assert fitted.baselines[0] == pytest.approx(wanted)
    assert wanted > 30
