"""The page's own scores and normalizers give the numbers of heedful's."""

import math
from collections.abc import Generator
from typing import Any

import pytest
import torch

from heedful.attention.dispatch import attend
from heedful.attention.monotonic import Monotonic
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES, Additive, Concat, General, Location, Trilinear
from heedful.pages.bundle import page_files
from tests.pages.browser import chromium, needs_chromium

QUERY = (0.7, -0.4)
KEYS = ((1.0, 0.0), (0.5, 1.0), (-1.0, 0.5), (0.2, -0.6), (1.5, 1.0))
SCORE_ROWS = ((0.3, -1.2, 2.0, 0.1, 0.7), (0.0, 0.0, 0.0, 0.0, 0.0), (5.0, 4.9, -3.0, 4.95, 1.0))
W, U, V = [[1.0, 0.5], [-0.5, 1.0]], [[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0]


@pytest.fixture(scope="module")
def script() -> Generator[Any]:
    with chromium() as browser:
        page = browser.new_page()
        text = page_files()["mechanisms.js"].decode().replace("export ", "")
        page.evaluate(
            f"(() => {{ {text}; Object.assign(window, {{ SCORES, NORMALIZERS, FORMULAS, PARAMETERS, "
            "projectiveTree, regression, gaussianWindow }); })()"
        )
        yield page


def with_parameters(name: str) -> Any:
    """The score with the parameters that the page fixes."""
    score = SCORES[name](2, 2, 0 if name == "location" else 2).double()
    with torch.no_grad():
        if isinstance(score, General):
            score.weight.copy_(torch.tensor(W))
        if isinstance(score, Trilinear):
            score.weight.copy_(torch.tensor([[0.5, -0.5], [1.0, 0.0], [1.0, 2.0]]))
        if isinstance(score, Additive):
            score.query_projection.weight.copy_(torch.tensor(W))
            score.key_projection.weight.copy_(torch.tensor(U))
            score.vector.copy_(torch.tensor(V))
        if isinstance(score, Concat):
            score.weight.copy_(torch.cat([torch.tensor(W), torch.tensor(U)], dim=1))
            score.vector.copy_(torch.tensor(V))
        if isinstance(score, Location):
            score.weight.zero_()
            positions = torch.arange(len(score.weight))
            score.weight.copy_(torch.stack([positions.cos(), positions.sin()], dim=1))
    return score


@needs_chromium
def test_the_page_has_every_score_and_normalizer_of_the_tables(script: Any):
    assert script.evaluate("Object.keys(SCORES)") == list(SCORES)
    assert [*script.evaluate("Object.keys(NORMALIZERS)"), "projective_tree"] == list(NORMALIZERS)
    assert set(script.evaluate("Object.keys(FORMULAS)")) == {*SCORES, *NORMALIZERS}


@needs_chromium
@pytest.mark.parametrize("name", list(SCORES))
def test_scores_agree(script: Any, name: str):
    query, keys = torch.tensor([QUERY], dtype=torch.float64), torch.tensor(KEYS, dtype=torch.float64)
    expected = attend(query, keys, keys, score=with_parameters(name), need="weights").weights
    scores = script.evaluate(
        "([name, query, keys]) => keys.map((key, index) => SCORES[name](query, key, PARAMETERS, index))"
        ".map((score) => score === -Infinity ? null : score)",
        [name, QUERY, KEYS],
    )
    row = torch.tensor([-math.inf if score is None else score for score in scores], dtype=torch.float64)
    torch.testing.assert_close(row.softmax(dim=0), expected[0], rtol=1e-6, atol=1e-9)
    assert name in ("uniform", "constant") or len(set(scores)) > 1


@needs_chromium
@pytest.mark.parametrize("scores", SCORE_ROWS)
@pytest.mark.parametrize("hidden", [(), (2,), (0, 1, 3)])
@pytest.mark.parametrize("name", [name for name in NORMALIZERS if name not in ("projective_tree",)])
def test_normalizers_agree(script: Any, name: str, scores: tuple[float, ...], hidden: tuple[int, ...]):
    allowed = [index not in hidden for index in range(len(scores))]
    row = torch.tensor([scores], dtype=torch.float64)
    # Without noise a sampled key is the best one, and the temperature is 1, as by default.
    normalizer = NORMALIZERS[name]().without_noise()
    noise = [0.0] * len(scores)
    if name == "gumbel_softmax":
        normalizer = NORMALIZERS["softmax"]()
    if name == "monotonic":
        normalizer = Monotonic(noise=0.0)
    expected = normalizer.normalize(row, torch.tensor([allowed])).weights[0]
    found = script.evaluate(
        "([name, scores, allowed, noise]) => NORMALIZERS[name](scores, allowed, { temperature: 1, noise })",
        [name, scores, allowed, noise],
    )
    torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), expected, rtol=1e-6, atol=1e-9)


@needs_chromium
@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax"])
def test_temperatures_agree(script: Any, name: str):
    expected = NORMALIZERS[name]().normalize(torch.tensor([SCORE_ROWS[0]], dtype=torch.float64) / 2.5, None).weights[0]
    found = script.evaluate(
        "([name, scores]) => NORMALIZERS[name](scores, scores.map(() => true), { temperature: 2.5 })",
        [name, SCORE_ROWS[0]],
    )
    torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), expected, rtol=1e-6, atol=1e-9)


@needs_chromium
def test_projective_trees_agree(script: Any):
    matrix = torch.randn(5, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = NORMALIZERS["projective_tree"]().normalize(matrix, None).weights
    found = script.evaluate("(matrix) => projectiveTree(matrix)", matrix.tolist())
    torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), expected, rtol=1e-6, atol=1e-9)
    assert not torch.allclose(torch.tensor(found, dtype=torch.float64)[1:], matrix.softmax(dim=-1)[1:])
