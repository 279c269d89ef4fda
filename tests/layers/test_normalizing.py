import torch

from heedful.attention.dispatch import attend
from heedful.attention.scores import Dot
from heedful.attention.simplex import Sparsemax
from heedful.attention.softmax import SOFTMAX, Softmax
from heedful.attention.stochastic import GumbelSoftmax, Hard, Sampled, StraightThrough
from heedful.attention.structured import LinearChain
from heedful.layers.normalizing import NormalizerLayer, set_soft


def test_a_normalizer_without_parameters_is_given_as_it_is():
    layer = NormalizerLayer(SOFTMAX, num_heads=3)
    assert layer() is SOFTMAX
    assert layer.eval()() is SOFTMAX
    assert list(layer.parameters()) == []


def test_noise_is_of_training_alone():
    for normalizer in (Sampled(), StraightThrough(), GumbelSoftmax(is_hard=True)):
        layer = NormalizerLayer(normalizer)
        assert layer() is normalizer
        assert isinstance(layer.eval()(), Hard)


def test_in_a_soft_start_training_has_softmax_and_inference_does_not():
    layer = NormalizerLayer(StraightThrough())
    set_soft(torch.nn.Sequential(layer), True)
    assert layer() is SOFTMAX
    assert isinstance(layer.eval()(), Hard)
    set_soft(layer.train(), False)
    assert isinstance(layer(), StraightThrough)


def test_a_soft_step_has_the_temperature_of_what_is_drawn():
    for normalizer, temperature in (
        *((kind(temperature=0.1), 0.1) for kind in (Sampled, StraightThrough, Softmax, Sparsemax)),
        (GumbelSoftmax(temperature=0.1), 1.0),
    ):
        layer = NormalizerLayer(normalizer)
        set_soft(layer, True)
        assert layer() == SOFTMAX if temperature == 1.0 else layer().inverse_temperature == 1 / temperature
        assert isinstance(layer(), Softmax)


def test_each_head_learns_transitions_of_its_own():
    layer = NormalizerLayer(LinearChain(), num_heads=2)
    assert {name: list(parameter.shape) for name, parameter in layer.named_parameters()} == {"transition": [1, 2, 2, 2]}
    query, key = torch.randn(3, 2, 4, 5), torch.randn(3, 2, 6, 5)

    def weights() -> torch.Tensor:
        found = attend(query, key, key, score=Dot(5, 5), normalizer=layer(), need=("weights",)).weights
        assert found is not None
        return found

    before = weights()
    assert torch.allclose(before, torch.sigmoid(query @ key.mT), atol=1e-6)
    before[:, 1].sum().backward()
    assert layer.transition.grad is not None
    assert not layer.transition.grad[:, 0].any()
    assert layer.transition.grad[:, 1].any()
    with torch.no_grad():
        layer.transition[:, 1, 1, 1] += 2.0
    after = weights()
    assert torch.equal(after[:, 0], before[:, 0])
    assert bool((after[:, 1] > before[:, 1]).all())
