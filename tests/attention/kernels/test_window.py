"""Properties of this kernel alone: gathered keys, refusals, tiles; the rest is in tests/contracts."""

from typing import Any

import pytest
import torch

from heedful.attention.dispatch import attend
from heedful.attention.interface import Need
from heedful.attention.kernels import window as module
from heedful.attention.kernels.interface import Request
from heedful.attention.kernels.plain import PlainScores
from heedful.attention.kernels.window import NARROW, Window
from heedful.attention.lowered import GivenScores, LoweredAdditive, LoweredDot, LoweredScore
from heedful.attention.masks import local_monotonic, local_predictive, padding, window
from heedful.attention.scores import Dot
from heedful.attention.simplex import Entmax
from heedful.attention.stochastic import Sampled
from heedful.attention.structured import LinearChain, ProjectiveTree
from tests.attention.cases import make_case
from tests.contracts.attention import distance

REQUEST = Request(LoweredDot, torch.float32, "cpu", 10, 100, mask="interval", width=3)
KERNEL = Window(PlainScores())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"width": None}, "not a window of known width"),
        ({"mask": "dense"}, "not a window of known width"),
        ({"mask": "none", "width": None}, "not a window of known width"),
        ({"width": 13}, "wider than 1/8 of the keys"),
        ({"pairs": GivenScores}, "needs all keys"),
        ({"normalizer": Sampled}, "need all keys"),
        ({"normalizer": ProjectiveTree}, "need all keys"),
        ({"need": frozenset({"weights", "entropy"})}, "gives no weights over all keys"),
        ({"mode": "export"}, "export"),
    ],
)
def test_it_says_why_it_refuses(change: dict[str, Any], reason: str):
    assert reason in str(KERNEL.supports(REQUEST._replace(**change)))


@pytest.mark.parametrize(
    "change",
    [
        {"width": 12},
        {"pairs": LoweredAdditive},
        {"normalizer": LinearChain},
        {"has_gaussian": True},
        {"need": frozenset({"argmax", "entropy", "log_normalizer"})},
        {"dropout": 0.1, "wants_gradient": True, "mode": "compile"},
    ],
)
def test_it_takes_the_rest(change: dict[str, Any]):
    assert NARROW == 8
    assert KERNEL.supports(REQUEST._replace(**change)) is None


def test_only_keys_of_windows_are_scored(monkeypatch: pytest.MonkeyPatch):
    scored: list[int] = []
    known = PlainScores.scores

    def counted(self: PlainScores, pairs: LoweredScore) -> Any:
        scores = known(self, pairs)
        scored.append(scores[0].numel())
        return scores

    monkeypatch.setattr(PlainScores, "scores", counted)
    case = make_case("additive", leading=(2,), num_queries=5, num_keys=1000)
    attend(*case.inputs, score=case.score, mask=local_monotonic(1))
    assert scored == [2 * 5 * 3]


@pytest.mark.parametrize(
    "mask",
    [
        window(2, 1),
        window(0, 0),
        local_monotonic(1, first=38),  # the windows hang over the end
        local_monotonic(1, first=100),
        local_predictive(torch.tensor([[-1.2, 0.4, 38.9, 41.0], [7.0, 7.5, -9.0, 1e9]]), 1),
        local_predictive(torch.tensor([3.3]), 2, 0.9) & padding(torch.tensor([5, 2])),
    ],
)
def test_windows_that_hang_over_an_end(mask: Any):
    case = make_case("scaled_dot", leading=(2,), num_queries=4, num_keys=40)
    need: tuple[Need, ...] = ("argmax", "entropy", "log_normalizer")
    given, wanted = (
        attend(*case.inputs, score=case.score, mask=mask, need=need, kernel=kernel) for kernel in ("window", "plain")
    )
    assert distance(given.context, wanted.context) <= 1e-13
    for summary in need:
        assert distance(getattr(given, summary), getattr(wanted, summary)) <= 1e-12, summary


def test_what_a_normalizer_holds_for_each_head_finds_the_head():
    # As many queries as heads: an axis mistaken for the other would not be noticed by its size.
    case = make_case("scaled_dot", leading=(2, 3), num_queries=3, num_keys=40)
    alpha = torch.tensor([1.1, 1.7, 2.4], dtype=torch.float64).reshape(3, 1, 1)
    transition = torch.randn(1, 3, 2, 2).double()
    for normalizer in (Entmax(alpha), LinearChain(transition)):
        given, wanted = (
            attend(*case.inputs, score=case.score, mask=window(1, 1), normalizer=normalizer, kernel=kernel).context
            for kernel in ("window", "plain")
        )
        assert distance(given, wanted) <= 1e-13


def test_values_may_have_more_leading_axes_than_scores():
    case = make_case("scaled_dot", leading=(2,), num_queries=3, num_keys=40)
    value = torch.randn(3, 2, 40, 5).double()
    centres = torch.tensor([[1.2, 4.0, 9.9], [30.2, 4.1, 0.0]], dtype=torch.float64)
    for mask in (window(1, 1) & padding(torch.tensor([39, 38])), local_predictive(centres, 2)):
        given, wanted = (
            attend(case.query, case.key, value, score=case.score, mask=mask, kernel=kernel).context
            for kernel in ("window", "plain")
        )
        assert given.shape == (3, 2, 3, 5)
        assert distance(given, wanted) <= 1e-14


def test_leading_axes_may_be_broadcast():
    query, key, value = torch.randn(2, 1, 3, 4).double(), torch.randn(1, 3, 40, 4).double(), torch.randn(40, 6).double()
    given, wanted = (
        attend(query, key, value, score=Dot(4, 4), mask=window(1, 1), kernel=kernel).context
        for kernel in ("window", "plain")
    )
    assert distance(given, wanted) <= 1e-13


@pytest.mark.parametrize(("tile", "tiles"), [(1, 5), (2 * 3 * 7 * 2, 3), (10**6, 1)])
def test_tiles_of_queries(tile: int, tiles: int, monkeypatch: pytest.MonkeyPatch):
    case = make_case("scaled_dot", leading=(2,), num_queries=5, num_keys=40)  # 4 + 3 numbers a key
    whole = attend(*case.inputs, score=case.score, mask=window(1, 1)).context
    counted: list[int] = []
    known = PlainScores.scores
    monkeypatch.setattr(
        PlainScores, "scores", lambda self, pairs: counted.append(pairs.query.shape[-3]) or known(self, pairs)
    )
    monkeypatch.setattr(module, "WHOLE", 0)
    monkeypatch.setattr(module, "TILE", tile)
    with torch.no_grad():
        context = attend(*case.inputs, score=case.score, mask=window(1, 1)).context
    assert (len(counted), sum(counted)) == (tiles, 5)
    assert distance(context, whole) <= 1e-14


def test_dropout_leaves_out_weights():
    query, key = torch.zeros(4, 8), torch.zeros(2000, 8)
    torch.manual_seed(0)
    context = attend(query, key, torch.ones(2000, 1), score=Dot(8, 8), mask=window(99, 100), dropout=0.5).context
    assert float(context.mean()) == pytest.approx(1.0, abs=0.2)
    assert float(context.std()) > 0.0
