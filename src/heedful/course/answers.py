"""Right answers to the exercises of the course, and usual wrong ones, in NumPy."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def random_arrays(*shapes: Sequence[int]) -> Callable[[], list[Array]]:
    """Draw arrays of some shapes, the same at each call."""

    def draw() -> list[Array]:
        random = np.random.default_rng(7)
        return [random.standard_normal(shape) for shape in shapes]

    return draw


def softmax(scores: Array) -> Array:
    """Normalise each row to weights that sum to 1."""
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def regression(x: Array, keys: Array, values: Array, h: float) -> Array:
    """Predict at x by the Gaussian kernel."""
    return softmax(-((x[:, None] - keys) ** 2) / (2 * h**2)) @ values


def from_others(x: Array, y: Array, h: float) -> Array:
    """Predict each point from all others by the Gaussian kernel."""
    scores = -((x[:, None] - x) ** 2) / (2 * h**2)
    np.fill_diagonal(scores, -np.inf)
    return softmax(scores) @ y


def class_shares(x: Array, keys: Array, labels: Array, h: float) -> Array:
    """Predict probabilities of three classes at x by the Gaussian kernel."""
    return regression(x, keys, np.eye(3)[labels.astype(int)], h)


def scaled_dot(query: Array, key: Array, value: Array) -> Array:
    """Attend by scaled dot products."""
    return softmax(query @ key.T / np.sqrt(query.shape[-1])) @ value


def additive(query: Array, key: Array, w: Array, u: Array, v: Array) -> Array:
    """Score a query with each key through one hidden layer."""
    return np.tanh(w @ query + key @ u.T) @ v


def is_word(table: Array, lengths: Array) -> NDArray[np.bool_]:
    """Find the places of a table [sentence, word] that have a word, not padding."""
    return np.arange(table.shape[1]) < lengths[:, None]


def masked_weights(scores: Array, lengths: Array) -> Array:
    """Attend to the words of each sentence alone."""
    return softmax(np.where(is_word(scores, lengths), scores, -np.inf))


def context_derivative(query: Array, key: Array) -> Array:
    """Differentiate the context by the query, where scores are dot products and keys are values."""
    weights = softmax(key @ query)
    centred = key - weights @ key
    return centred.T @ (weights[:, None] * centred)


def batch_loss(log_probs: Array, lengths: Array) -> float:
    """Average minus the log probabilities of the words of a batch."""
    return -float((log_probs * is_word(log_probs, lengths)).sum() / lengths.sum())


def last_state(inputs: Array, w: Array, u: Array) -> Array:
    """Run a simple recurrent network, and return its last state."""
    state = np.zeros(len(u))
    for x in inputs:
        state = np.tanh(w @ x + u @ state)
    return state


def local_weights(scores: Array, centre: float, half_width: int) -> Array:
    """Weigh keys near a centre, with a softmax over all keys."""
    distance = np.arange(len(scores)) - centre
    factors = np.exp(-(distance**2) / (2 * (half_width / 2) ** 2))
    return softmax(scores) * np.where(np.abs(distance) <= half_width, factors, 0.0)


def local_of_window(scores: Array, centre: float, half_width: int) -> Array:
    """Weigh keys near a centre, with a softmax over the window."""
    distance = np.arange(len(scores)) - centre
    near = np.abs(distance) <= half_width
    return softmax(np.where(near, scores, -np.inf)) * np.exp(-(distance**2) / (2 * (half_width / 2) ** 2))


def sparsemax(scores: Array) -> Array:
    """Project scores onto the simplex."""
    ordered = np.sort(scores)[::-1]
    excess = np.cumsum(ordered) - 1.0
    size = int(np.sum(ordered * np.arange(1, len(scores) + 1) > excess))
    return np.maximum(scores - excess[size - 1] / size, 0.0)


def monotonic_weights(p: Array) -> Array:
    """Weigh keys by where a walk along them stops first."""
    return p * np.concatenate([[1.0], np.cumprod(1.0 - p)[:-1]])


def positions(length: int, size: int) -> Array:
    """Tabulate position codes, sines and cosines in turn."""
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, size, 2) / size)
    table = np.zeros((length, size))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def positions_in_halves(length: int, size: int) -> Array:
    """Tabulate position codes, sines before cosines."""
    table = positions(length, size)
    return np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1)


def layer_norm(x: Array, axis: int = -1) -> Array:
    """Normalise along an axis."""
    centred = x - x.mean(axis, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis, keepdims=True) + 1e-5)


def document_vector(states: Array, w: Array, query: Array) -> Array:
    """Attend to words with a query that is a parameter."""
    return softmax(np.tanh(states @ w.T) @ query) @ states
