import math

import numpy as np
import pytest
import torch

from heedful.data.batching import pairs_by_length
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.models.inputs import TokenInputs
from heedful.models.transformer import TransformerConfig
from heedful.training.likelihood import Likelihood, log_likelihood
from heedful.training.pair_step import PairStep

SIZES = TransformerConfig(
    num_encoder_layers=1, num_decoder_layers=1, model_size=8, num_heads=2, feedforward_size=8, dropout=0.5
)
SOURCES = [[5, 6, 3], [7, 3], [4, 4, 4, 4, 3]]
TARGETS = [[8, 3], [9, 9, 9, 3], [3]]


def test_log_probabilities_of_the_gold_tokens_are_summed():
    torch.manual_seed(0)
    model = SIZES.build(10, 10, True).double().eval()
    expected = 0.0
    for source, target in zip(SOURCES, TARGETS, strict=True):
        with torch.no_grad():
            decoded = model(
                TokenInputs(torch.tensor([source]), torch.tensor([len(source)])), torch.tensor([[2, *target[:-1]]])
            )
            log_probs = torch.log_softmax(model.logits(decoded.features), dim=-1)[0]
        expected += sum(float(log_probs[place, token].detach()) for place, token in enumerate(target))
    corpus = EncodedCorpus(EncodedSide.of(SOURCES), EncodedSide.of(TARGETS))
    whole = log_likelihood(PairStep(model, 0.0), pairs_by_length(corpus))
    assert whole.num_units == 7
    assert whole.log_prob == pytest.approx(expected, rel=1e-6)
    assert log_likelihood(PairStep(model, 0.0), pairs_by_length(corpus, 2)).log_prob == pytest.approx(
        expected, rel=1e-6
    )


def test_perplexity_of_even_odds_is_their_number():
    found = Likelihood(4 * math.log(1 / 8), 4)
    assert found.loss == pytest.approx(math.log(8))
    assert found.perplexity == pytest.approx(8.0)
    assert np.isfinite(Likelihood(-1e9, 1).perplexity)
