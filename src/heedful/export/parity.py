"""Parity of an engine with PyTorch: differences of log probabilities, and number of equal greedy outputs."""

from typing import Final

import numpy as np

from heedful.engines.engine import Backend
from heedful.engines.exported import Parity
from heedful.search.config import SearchConfig
from heedful.search.inputs import InputArrays, InputDraw, Sources
from heedful.text.vocabulary import EOS

_NUM_SOURCES: Final = 48


def draw_sources(draw: InputDraw, most: int, seed: int = 1) -> InputArrays:
    """Draw random sources of all lengths up to a maximum, most of them short.

    Args:
        draw: function that draws random sources of the kind that the model reads.
        most: maximum number of positions.
    """
    generator = np.random.default_rng(seed)
    lengths = np.geomspace(2, max(2, most), _NUM_SOURCES).astype(np.int64)
    return draw(lengths, generator)


def measure(reference: Backend, other: Backend, sources: Sources, max_length: int) -> Parity:
    """Compare an engine with a reference engine.

    Args:
        sources: inputs of the kind that the model reads, or the [position] ids of each source.
        max_length: maximum number of tokens of an output.

    Returns:
        Largest difference of a token's log probability in outputs made from the reference's tokens, and the number of
        equal greedy outputs.
    """
    greedy = SearchConfig(beam=1, max_length_ratio=1.5, max_length_offset=5)
    wanted = [hypotheses[0].token_ids for hypotheses in reference.decode(sources, greedy)]
    got = [hypotheses[0].token_ids for hypotheses in other.decode(sources, greedy)]
    # The scored outputs end with the tokens in reverse order, so that unlikely tokens are compared too.
    outputs = [[*ids[: max_length // 2], *ids[::-1][: max_length // 2 - 1], EOS][-max_length:] for ids in wanted]
    pairs = zip(reference.score(sources, outputs), other.score(sources, outputs), strict=True)
    differences = np.concatenate([np.abs(one.log_probs - two.log_probs) for one, two in pairs])
    same = sum(one == two for one, two in zip(wanted, got, strict=True))
    return Parity(float(differences.max(initial=0.0)), int(differences.size), len(sources), same)
