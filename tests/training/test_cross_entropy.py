import pytest
import torch
from torch import Tensor
from torch.nn import functional

from heedful.training import cross_entropy
from heedful.training.cross_entropy import linear_cross_entropy


def draw(num: int = 7, size: int = 5, vocabulary: int = 11, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(num)
    parts = [
        torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((num, size), (vocabulary, size))
    ]
    parts.append(torch.randn(vocabulary, generator=generator, dtype=torch.float64))
    gold = torch.randint(0, vocabulary, (num,), generator=generator)
    return [*(part.to(dtype).requires_grad_() for part in parts), gold]


def plain(features: Tensor, weight: Tensor, bias: Tensor | None, gold: Tensor, smoothing: float) -> Tensor:
    logits = functional.linear(features, weight, bias)
    return functional.cross_entropy(logits, gold, reduction="sum", label_smoothing=smoothing)


@pytest.mark.parametrize("rows", [1, 3, 7, 1000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("has_bias", [True, False])
def test_loss_and_gradients_are_pytorchs(has_bias: bool, smoothing: float, rows: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cross_entropy, "GROUP_ELEMENTS", rows * 11)
    features, weight, bias, gold = draw()
    inputs = [features, weight, *([bias] if has_bias else [])]
    given = linear_cross_entropy(features, weight, bias if has_bias else None, gold, smoothing)
    wanted = plain(features, weight, bias if has_bias else None, gold, smoothing)
    assert float((given.total - wanted).detach()) == pytest.approx(0.0, abs=1e-12)
    pairs = zip(torch.autograd.grad(3 * given.total, inputs), torch.autograd.grad(3 * wanted, inputs), strict=True)
    assert all(float((one - other).abs().max()) <= 1e-12 for one, other in pairs)


def test_gradients_equal_finite_differences():
    features, weight, bias, gold = draw(3, 2, 4)

    def total(*inputs: Tensor) -> Tensor:
        return linear_cross_entropy(inputs[0], inputs[1], inputs[2], gold, 0.2).total

    assert torch.autograd.gradcheck(total, (features, weight, bias))


def test_gold_log_probabilities_are_without_smoothing_and_without_gradient():
    features, weight, bias, gold = draw()
    given = linear_cross_entropy(features, weight, bias, gold, 0.3)
    logits = functional.linear(features, weight, bias).detach()
    log_probs = torch.log_softmax(logits, dim=-1)
    assert float((given.gold_log_probs - log_probs[range(7), gold]).abs().max()) <= 1e-13
    assert int(given.num_correct) == int((logits.argmax(dim=-1) == gold).sum())
    assert not given.gold_log_probs.requires_grad
    assert not given.num_correct.requires_grad


def test_smoothing_gives_each_token_its_share():
    # Szegedy et al.: (1 - e) on the gold token and e / V on every token, the gold one among them.
    features, weight, bias, gold = (part.detach() for part in draw())
    log_probs = torch.log_softmax(functional.linear(features, weight, bias), dim=-1)
    target = torch.full_like(log_probs, 0.1 / 11)
    target[range(7), gold] += 0.9
    total = linear_cross_entropy(features, weight, bias, gold, 0.1).total
    assert float(total) == pytest.approx(-float((target * log_probs).sum()), abs=1e-12)


def test_no_tokens_give_no_loss_and_no_gradient():
    features, weight, bias, _ = draw()
    empty = linear_cross_entropy(features[:0], weight, bias, torch.zeros(0, dtype=torch.int64), 0.1)
    assert float(empty.total.detach()) == 0.0
    assert int(empty.num_correct) == 0
    gradients = torch.autograd.grad(empty.total, (features, weight, bias))
    assert all(bool((gradient == 0.0).all()) for gradient in gradients)


def test_huge_logits_stay_finite():
    features, weight, bias, gold = draw(dtype=torch.float32)
    given = linear_cross_entropy(features * 1e4, weight * 1e2, bias, gold, 0.1)
    assert bool(torch.isfinite(given.total))
    assert all(bool(torch.isfinite(g).all()) for g in torch.autograd.grad(given.total, (features, weight, bias)))


def test_nothing_is_kept_for_a_backward_that_will_not_come():
    features, weight, bias, gold = draw()
    with torch.no_grad():
        given = linear_cross_entropy(features, weight, bias, gold)
    assert not given.total.requires_grad
    assert float(given.total) == pytest.approx(-float(given.gold_log_probs.sum()))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # PyTorch's own, of forward mode
def test_second_derivatives_are_those_of_the_formula():
    features, weight, bias, gold = draw()

    def total(*inputs: torch.Tensor) -> torch.Tensor:
        return linear_cross_entropy(*inputs, gold, 0.1).total

    assert torch.autograd.gradgradcheck(total, (features, weight, bias), fast_mode=True)
    # The gradient of the total has no graph here, which is where second derivatives were silently zero.
    hessians = [
        torch.autograd.functional.hessian(each, features.detach())
        for each in (
            lambda rows: total(rows, weight.detach(), bias.detach()),
            lambda rows: plain(rows, weight.detach(), bias.detach(), gold, 0.1),
        )
    ]
    assert float(hessians[1].norm()) > 0.1
    torch.testing.assert_close(*hessians)
    mapped = torch.func.hessian(lambda rows: total(rows, weight.detach(), bias.detach()))(features.detach())
    torch.testing.assert_close(mapped, hessians[1])


def test_mixed_precision_sums_in_float32():
    features, weight, bias, gold = draw(64, 32, 50, torch.float32)
    exact = plain(features.double(), weight.double(), bias.double(), gold, 0.1)
    wanted = torch.autograd.grad(exact, (features, weight, bias))
    with torch.autocast("cpu", torch.bfloat16):
        given = linear_cross_entropy(features.bfloat16(), weight, bias, gold, 0.1)
    assert given.total.dtype == torch.float32
    assert float(given.total.detach()) == pytest.approx(float(exact.detach()), rel=1e-2)
    for one, other in zip(torch.autograd.grad(given.total, (features, weight, bias)), wanted, strict=True):
        assert one.dtype == torch.float32
        assert float((one - other).norm() / other.norm()) <= 2e-2


def test_no_class_means_that_a_row_is_left_out():
    """-100 does in PyTorch; under its function transforms nothing else checks the classes."""
    features, weight, gold = torch.randn(3, 4), torch.randn(5, 4), torch.tensor([0, 1, -100])

    def total(rows: Tensor) -> Tensor:
        return linear_cross_entropy(rows, weight, None, gold)[0]

    with pytest.raises((IndexError, RuntimeError, ValueError)):
        torch.func.grad(total)(features)
