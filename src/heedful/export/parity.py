"""Parity of an engine with PyTorch: log probabilities of the same tokens, and outputs of the same searches."""

from typing import Final

import numpy as np

from heedful.runtime.engine import Backend
from heedful.runtime.exported import Parity
from heedful.search.config import SearchConfig
from heedful.search.inputs import InputArrays, InputDraw, Sources
from heedful.text.vocabulary import EOS

_NUM_SOURCES: Final = 48


def draw_sources(draw: InputDraw, most: int, seed: int = 1) -> InputArrays:
    """Draw sources of all lengths that a model takes, most of them short.

    Args:
        draw: draws sources of the kind that the model reads.
        most: positions of the longest.
        seed: of the draws.

    Returns:
        The sources.
    """
    generator = np.random.default_rng(seed)
    lengths = np.geomspace(2, max(2, most), _NUM_SOURCES).astype(np.int64)
    return draw(lengths, generator)


def measure(reference: Backend, other: Backend, sources: Sources, max_length: int) -> Parity:
    """Compare an engine with a reference engine.

    Args:
        reference: PyTorch.
        other: the engine.
        sources: inputs of the kind that the model reads, or the [position] ids of each source.
        max_length: most tokens of an output.

    Returns:
        Differences of the log probabilities of the tokens of the reference's outputs, and how many greedy outputs are
        the same.
    """
    greedy = SearchConfig(beam=1, max_length_ratio=1.5, max_length_offset=5)
    wanted = [hypotheses[0].token_ids for hypotheses in reference.decode(sources, greedy)]
    got = [hypotheses[0].token_ids for hypotheses in other.decode(sources, greedy)]
    # What follows what: also the outputs' tokens in an order that no model expects.
    outputs = [[*ids[: max_length // 2], *ids[::-1][: max_length // 2 - 1], EOS][-max_length:] for ids in wanted]
    pairs = zip(reference.score(sources, outputs), other.score(sources, outputs), strict=True)
    differences = np.concatenate([np.abs(one.log_probs - two.log_probs) for one, two in pairs])
    same = sum(one == two for one, two in zip(wanted, got, strict=True))
    return Parity(float(differences.max(initial=0.0)), int(differences.size), len(sources), same)
