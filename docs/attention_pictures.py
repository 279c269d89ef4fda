"""The pictures of the page on attention, computed by the package itself, in float64 and without chance.

Names in them are those of the code, so that one picture serves every language.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import torch
from attention_pictures_models import MODEL_PICTURES
from drawing import BLUE, GREEN, INK, ORANGE, Panel, Picture
from numpy.typing import NDArray
from torch import Tensor

from heedful.attention import (
    SOFTMAX,
    Dot,
    Entmax,
    GumbelSoftmax,
    Hard,
    LinearChain,
    Mask,
    NadarayaWatsonRegressor,
    NormalizedLinearChain,
    Normalizer,
    Sampled,
    ScaledDot,
    Softmax,
    Sparsemax,
    attend,
    causal,
    graph,
    local_monotonic,
    local_predictive,
    padding,
    toy_data,
    window,
)
from heedful.attention.profiles import PROFILES
from heedful.layers import sinusoids

WIDTH: Final = 720
"""Pixels of all pictures; pages show them about as wide."""
SCORES: Final = (2.0, 1.6, 0.4, -0.2, 1.0, -1.0)
"""Scores of six keys, for several pictures."""

Array = NDArray[np.float64]


def _weights(normalizer: Normalizer, scores: Sequence[float] | Tensor) -> Array:
    """Weights [query, key] of scores [key] or [query, key]."""
    tensor = torch.as_tensor(scores, dtype=torch.float64) * normalizer.inverse_temperature
    return normalizer.normalize(tensor.reshape(-1, tensor.shape[-1]), None).weights.numpy()


def _columns(picture: Picture, count: int, top: float, height: float, left: float = 34, gap: float = 30) -> list[Panel]:
    """Panels side by side with scales from 0 to 1."""
    width = (WIDTH - left - 12 - gap * (count - 1)) / count
    return [Panel(picture, left + place * (width + gap), top, width, height, (0, 1), (0, 1)) for place in range(count)]


def _scaled(panel: Panel, x: tuple[float, float], y: tuple[float, float]) -> Panel:
    return Panel(panel.picture, panel.left, panel.top, panel.width, panel.height, x, y)


def regression() -> Picture:
    """Draw average pooling, a fixed width and a learned width on the toy data, above their weights."""
    picture = Picture(WIDTH, 362)
    toy = toy_data(seed=0)
    models = [
        NadarayaWatsonRegressor("constant"),
        NadarayaWatsonRegressor("gaussian", bandwidth=1.0),
        NadarayaWatsonRegressor("gaussian", bandwidth="learned"),
    ]
    fitted = [model.fit(toy.x, toy.y) for model in models]
    weights = [model.weights(toy.grid) for model in fitted]
    most = max(each.max() for each in weights)
    for panel, model, each in zip(_columns(picture, 3, 26, 176), fitted, weights, strict=True):
        panel = _scaled(panel, (0, 5), (-1, 5))
        width = "" if model.kernel_ == "constant" else f", h = {model.bandwidth_:.2f}"
        panel.title(model.kernel_ + width)
        panel.axes(range(6), (0, 2, 4))
        panel.scatter(toy.x[:, 0], toy.y)
        panel.curve(toy.grid[:, 0], toy.truth, ORANGE, 1.5, "5 4")
        panel.curve(toy.grid[:, 0], model.predict(toy.grid))
        # The root, so that weights of a fiftieth still show beside those of a fifth.
        picture.cells(np.sqrt(each[::2] / most), panel.left, 232, panel.width, 118)
    return picture


def kernels() -> Picture:
    """Draw the shapes of the kernels, and what a Gaussian of several widths makes of keys on a line."""
    picture = Picture(WIDTH, 366)
    edge = 1 - 1e-9
    u = torch.tensor([*np.linspace(-3, -1, 41), *np.linspace(-edge, edge, 61), *np.linspace(1, 3, 41)])
    upper, lower = _columns(picture, 3, 26, 72), _columns(picture, 3, 148, 72)
    for panel, (name, profile) in zip([*upper, *lower], PROFILES.items(), strict=True):
        heights = torch.where(u.abs() < profile.reach, profile.log_kernel(u.square()).exp(), 0.0)
        panel = _scaled(panel, (-3, 3), (0, 1.1))
        panel.title(name, is_code=True)
        panel.axes(range(-3, 4), (0, 1))
        panel.curve(u, heights)
    keys = np.linspace(0, 5, 41)[:, None]
    for panel, bandwidth in zip(_columns(picture, 4, 270, 72), (0.1, 0.2, 0.5, 1.0), strict=True):
        model = NadarayaWatsonRegressor("gaussian", bandwidth).fit(keys, keys[:, 0])
        panel = _scaled(panel, (-1, 41), (0, 0.52))
        panel.title(f"h = {bandwidth:g}")
        panel.axes((), (0, 0.5))
        panel.bars(model.weights([[2.5]])[0])
    return picture


def scaling() -> Picture:
    """Draw the weights of dot products and of scaled ones as vectors grow longer, largest first, mean of 64 queries."""
    picture = Picture(WIDTH, 288)
    generator = np.random.default_rng(0)
    for kind, top in ((Dot, 26), (ScaledDot, 166)):
        for panel, depth in zip(_columns(picture, 3, top, 96), (4, 64, 1024), strict=True):
            query, key = (torch.from_numpy(generator.standard_normal((64, count, depth))) for count in (1, 10))
            score = kind(depth, depth)
            weights = attend(query, key, key, score=score, need=["weights"]).weights
            panel = _scaled(panel, (-0.6, 9.6), (0, 1))
            panel.title(f"{kind.__name__}({depth}, {depth})", is_code=True)
            panel.axes((), (0, 0.5, 1))
            if weights is not None:
                panel.bars(weights[:, 0].sort(descending=True).values.mean(dim=0))
    return picture


def temperature() -> Picture:
    """Draw the softmax of the same scores at several temperatures."""
    picture = Picture(WIDTH, 160)
    first, *others = _columns(picture, 5, 28, 110)
    first = _scaled(first, (-0.6, 5.6), (-1.2, 2.2))
    first.title("scores")
    first.axes((), (-1, 0, 1, 2))
    first.bars(SCORES, INK)
    for panel, degree in zip(others, (0.1, 0.5, 1.0, 5.0), strict=True):
        panel = _scaled(panel, (-0.6, 5.6), (0, 1))
        panel.title(f"τ = {degree:g}")
        panel.axes((), (0, 0.5, 1))
        panel.bars(_weights(Softmax(degree), SCORES)[0])
    return picture


def sparse() -> Picture:
    """Draw softmax, entmax and sparsemax: of two keys as their scores part, and of six."""
    picture = Picture(WIDTH, 190)
    ways = {"Softmax()": (SOFTMAX, INK), "Entmax(1.5)": (Entmax(1.5), GREEN), "Sparsemax()": (Sparsemax(), BLUE)}
    first, *others = _columns(picture, 4, 28, 118)
    first = _scaled(first, (-3, 3), (0, 1))
    first.axes(range(-3, 4), (0, 0.5, 1))
    gaps = torch.linspace(-3, 3, 121, dtype=torch.float64)
    for normalizer, colour in ways.values():
        first.curve(gaps, _weights(normalizer, torch.stack([gaps, torch.zeros_like(gaps)], dim=-1))[:, 0], colour)
    first.title("z = (t, 0)")
    picture.text(first.left + first.width / 2, 180, "t", size=11)
    for panel, (name, (normalizer, colour)) in zip(others, ways.items(), strict=True):
        panel = _scaled(panel, (-0.6, 5.6), (0, 1))
        panel.title(name, is_code=True)
        panel.axes((), (0, 0.5, 1))
        weights = _weights(normalizer, SCORES)[0]
        panel.bars(weights, colour)
        for place in np.flatnonzero(weights == 0.0).tolist():
            x, y = panel.at(place, 0)
            picture.text(x, y - 5, "0", size=11)
    return picture


def hard() -> Picture:
    """Draw a dozen draws of each kind, one a row, above their mean over thousands and the softmax they come from."""
    picture = Picture(WIDTH, 300)
    ways: dict[str, Normalizer] = {
        "Hard()": Hard(),
        "Sampled()": Sampled(seed=3),
        "GumbelSoftmax(τ=0.3)": GumbelSoftmax(seed=3, temperature=0.3),
        "GumbelSoftmax(τ=3)": GumbelSoftmax(seed=3, temperature=3.0),
    }
    expected = _weights(SOFTMAX, SCORES)[0]
    rows = torch.tensor(SCORES, dtype=torch.float64).expand(4000, -1)
    for panel, (name, normalizer) in zip(_columns(picture, 4, 28, 144, gap=34), ways.items(), strict=True):
        panel.title(name, is_code=True)
        drawn = _weights(normalizer, rows)
        picture.cells(drawn[:12], panel.left, panel.top, panel.width, panel.height)
        below = Panel(picture, panel.left, 200, panel.width, 90, (-0.5, 5.5), (0, 1))
        below.axes((), (0, 0.5, 1))
        below.bars(drawn.mean(axis=0))
        for place, weight in enumerate(expected.tolist()):
            below.curve([place - 0.42, place + 0.42], [weight, weight], ORANGE, 2.5)
    return picture


def masks() -> Picture:
    """Draw which keys (columns) each query (row) may attend, for the masks and some of their combinations."""
    picture = Picture(WIDTH, 366)
    size = 8
    centre = torch.tensor([0.4, 0.9, 2.2, 2.6, 4.1, 4.4, 6.2, 6.8], dtype=torch.float64)
    edges = ((0, 1), (1, 4), (2, 3), (2, 6), (4, 7), (5, 6))
    neighbours = torch.zeros(size, size, dtype=torch.bool)
    for one, other in edges:
        neighbours[one, other] = neighbours[other, one] = True
    shown: dict[str, Mask] = {
        "padding(lengths)": padding(torch.tensor(5)),
        "causal()": causal(),
        "window(2, 1)": window(2, 1),
        "causal() & window(2, 0)": causal() & window(2, 0),
        "local_monotonic(1)": local_monotonic(1),
        "local_predictive(p, 2)": local_predictive(centre, 2),
        "graph(a)": graph(neighbours),
        "graph(a) | window(0, 0)": graph(neighbours) | window(0, 0),
    }
    upper, lower = (_columns(picture, 4, top, 144, left=12, gap=34) for top in (28, 212))
    for panel, (name, mask) in zip([*upper, *lower], shown.items(), strict=True):
        rows = mask.rows(size, size, torch.device("cpu"))
        shares = rows.allowed(0, size).double()
        if rows.gaussian is not None:
            shares = shares * rows.gaussian.factors(torch.arange(size), 0)
        panel.title(name, is_code=True)
        picture.cells(shares.expand(size, size).numpy(), panel.left, panel.top, panel.width, panel.height, gap=0.12)
    return picture


def local() -> Picture:
    """Draw global attention and the two local ones over the same scores."""
    picture = Picture(WIDTH, 176)
    places = np.arange(14)
    scores = torch.from_numpy(0.9 * np.sin(1.7 * places) + 0.5 * np.cos(0.6 * places + 1)).reshape(1, -1)
    one = torch.zeros(1, 1, dtype=torch.float64)
    keys = one.expand(len(places), 1)
    ways: dict[str, tuple[Mask | None, float | None]] = {
        "mask=None": (None, None),
        "local_monotonic(3, first=6)": (local_monotonic(3, first=6), None),
        "local_predictive(p=6.3, 3)": (local_predictive(torch.tensor([6.3], dtype=torch.float64), 3), 6.3),
    }
    for panel, (name, (mask, centre)) in zip(_columns(picture, 3, 28, 122), ways.items(), strict=True):
        panel = _scaled(panel, (-0.7, 13.7), (0, 0.4))
        panel.title(name, is_code=True)
        panel.axes((0, 3, 6, 9, 12), (0, 0.2, 0.4))
        weights = attend(one, keys, keys, score=lambda query, key: scores, mask=mask, need=["weights"]).weights
        if centre is not None:
            x = np.linspace(centre - 3, centre + 3, 61)
            gaussian = np.exp(-0.5 * ((x - centre) / 1.5) ** 2)
            allowed = None if mask is None else mask.rows(1, len(places), scores.device).allowed(0, len(places))
            panel.bars(SOFTMAX.normalize(scores, allowed).weights[0], INK, opacity=0.45)
            panel.curve(x, 0.38 * gaussian, ORANGE, 1.5, "5 4")
        if weights is not None:
            panel.bars(weights[0])
    return picture


def chain() -> Picture:
    """Draw structured attention over a line of keys beside softmax."""
    picture = Picture(WIDTH, 170)
    scores = (-2.0, -1.0, 1.2, -0.3, 1.5, 0.9, -1.5, -2.0, 0.2, -1.8)
    together = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    ways: dict[str, Normalizer] = {
        "Softmax()": SOFTMAX,
        "LinearChain()": LinearChain(),
        "LinearChain(t)": LinearChain(together),
        "NormalizedLinearChain(t)": NormalizedLinearChain(together),
    }
    for panel, (name, normalizer) in zip(_columns(picture, 4, 28, 120, gap=32), ways.items(), strict=True):
        panel = _scaled(panel, (-0.7, len(scores) - 0.3), (0, 1))
        panel.title(name, is_code=True)
        panel.axes((), (0, 0.5, 1))
        panel.bars(_weights(normalizer, scores)[0])
    return picture


def positions() -> Picture:
    """Draw the matrix of sinusoids, and the dot products of its rows."""
    picture = Picture(WIDTH, 360)
    codes = sinusoids(torch.arange(60), 32).numpy()
    side = 322.0
    for left, title, matrix in ((28.0, "P", codes), (386.0, "P Pᵀ / 16", codes @ codes.T / 16)):
        picture.text(left + side / 2, 18, title)
        picture.cells(matrix, left, 28, side, side)
        for place in range(0, 60, 10):
            picture.text(left - 5, 28 + (place + 0.5) * side / 60 + 4, str(place), anchor="end", size=11)
    return picture


PICTURES: Final[dict[str, Callable[[], Picture]]] = {
    "regression": regression,
    "kernels": kernels,
    "scaling": scaling,
    "temperature": temperature,
    "sparse": sparse,
    "hard": hard,
    "chain": chain,
    "masks": masks,
    "local": local,
    "positions": positions,
    **MODEL_PICTURES,
}
"""Every picture by the name of its file."""
