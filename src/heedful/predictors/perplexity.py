"""Perplexity and bits per character of the references of an evaluation set."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.data.batching import pairs_by_length
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.prepare import EvaluationSet
from heedful.engines.engine import score_sorted
from heedful.predictors.translator import Translator
from heedful.text.encoding import encode_source
from heedful.text.vocabulary import EOS


@dataclass(frozen=True)
class Perplexity:
    """Perplexity of the references."""

    per_token: float
    """Perplexity of a target token: comparable between models with the same tokens."""
    bits_per_character: float
    """Bits per character: comparable between any two models."""
    num_tokens: int
    num_cut: int
    """Number of references beyond the model's length limit, of which only the beginning counts."""


def perplexity(translator: Translator, items: EvaluationSet) -> Perplexity:
    """Compute the perplexity of the references, by forced decoding.

    Args:
        translator: the model; its engine for forced decoding computes.
        items: sources and references; at least one item.
    """
    most, tokenizer = translator.text.max_tokens - 1, translator.target_tokenizer
    sources: list[list[int]] = []
    targets: list[list[int]] = []
    num_cut = num_characters = 0
    for source, texts in zip(items.sources, items.references, strict=True):
        ids = encode_source(translator.source_tokenizer, source, translator.text)[0].tolist()
        for text in texts:
            gold = tokenizer.encode(text)
            num_cut += len(gold) > most
            # Only the characters of the scored tokens share their bits.
            num_characters += len(tokenizer.decode(gold[:most]) if len(gold) > most else tokenizer.normalize(text))
            sources.append(ids)
            targets.append([*gold[:most], *[EOS] * (len(gold) <= most)])  # what was cut does not end there
    log_prob, num_tokens = _read(translator, sources, targets), sum(map(len, targets))
    bits = -log_prob / math.log(2.0) / max(1, num_characters)
    return Perplexity(math.exp(min(-log_prob / max(1, num_tokens), 700.0)), bits, num_tokens, num_cut)


def _read(translator: Translator, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> float:
    """Log probability of all targets together."""
    backend = translator.backends.scoring()
    if backend.name == "torch":
        from heedful.training.likelihood import log_likelihood
        from heedful.training.pair_step import PairStep

        corpus = EncodedCorpus(EncodedSide.of(sources), EncodedSide.of(targets))
        return log_likelihood(PairStep(translator.model(), label_smoothing=0.0), pairs_by_length(corpus)).log_prob
    ids = [np.array(source, dtype=np.int64) for source in sources]
    return sum(float(scored.log_probs.sum()) for scored in score_sorted(backend, ids, targets))
