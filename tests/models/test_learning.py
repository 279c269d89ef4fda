"""Every model learns a few pairs by heart: what a wrong gradient or a missing path from source to target prevents."""

import numpy as np
import pytest
import torch

from heedful.data.batching import make_batch
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.models.rnn_encoder_decoder import PRESETS as RNN_ENCODER_DECODER
from heedful.text.vocabulary import EOS
from heedful.training.optimizer import OptimizerConfig, make_optimizer
from heedful.training.pair_step import PairStep
from tests.models.tiny import CONFIGS, Config, changed
from tests.thorough import sampled, thinned

NUM_TOKENS = 16
RECURRENT = {"embedding_size": 16, "hidden_size": 32, "dropout": 0.0}
LEARNERS: dict[str, Config] = {
    "transformer": changed(CONFIGS["transformer-pre"], model_size=32, feedforward_size=64, dropout=0.0),
    "rnnsearch": changed(CONFIGS["rnnsearch"], **RECURRENT, maxout_size=16),
    "rnnsearch-conditional": changed(CONFIGS["rnnsearch-conditional"], **RECURRENT, maxout_size=16),
    "rnnsearch-convolutional": changed(CONFIGS["rnnsearch-convolutional"], **RECURRENT, maxout_size=16),
    "luong": changed(CONFIGS["luong"], **RECURRENT, output_dropout=0.0),
    "luong-global": changed(CONFIGS["luong-global"], **RECURRENT, output_dropout=0.0),
    "luong-gru": changed(CONFIGS["luong-gru"], **RECURRENT, output_dropout=0.0),
    "luong-location": changed(CONFIGS["luong-location"], **RECURRENT, output_dropout=0.0),
    "sutskever": changed(CONFIGS["sutskever"], **RECURRENT, output_dropout=0.0),
    "cho": changed(CONFIGS["cho"], **RECURRENT, output_dropout=0.0, maxout_size=16, initialization="uniform"),
    "d2l-seq2seq": changed(RNN_ENCODER_DECODER["d2l-seq2seq"], dropout=0.0),
}


def make_pairs() -> EncodedCorpus:
    generator = np.random.default_rng(0)
    sides = [[[*generator.integers(4, NUM_TOKENS, 2 + i % 4).tolist(), EOS] for i in range(8)] for _ in range(2)]
    return EncodedCorpus(*(EncodedSide.of(side) for side in sides))


@sampled(2)
@pytest.mark.parametrize("name", thinned(LEARNERS, 2))
def test_eight_pairs_are_learned_by_heart(name: str):
    torch.manual_seed(0)
    model = LEARNERS[name].build(NUM_TOKENS, NUM_TOKENS, False)
    step = PairStep(model, label_smoothing=0.0).train()
    optimizer = make_optimizer(model, OptimizerConfig(learning_rate=0.01))
    batch = make_batch(make_pairs(), np.arange(8))
    arrays = (batch.source, batch.source_lengths, batch.target_in, batch.target_out)
    tensors = [torch.from_numpy(array) for array in arrays]
    losses: list[float] = []
    while len(losses) < 300 and (not losses or losses[-1] >= 0.1):
        loss = step(*tensors).total / batch.num_units
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(loss.detach()))
    assert losses[0] > 2.0
    assert losses[-1] < 0.1, f"{losses[-1]} after {len(losses)} steps"
