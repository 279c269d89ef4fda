"""Kinds of spans that the training pairs keep: a model that spells numbers out, say, must not be kept from it."""

from collections import Counter
from typing import Final

from heedful.data.encoded import EncodedCorpus
from heedful.text.kept import find_kept, kept_rules
from heedful.text.tokenizer import Tokenizer

MOST_PAIRS: Final = 20_000
"""Number of pairs that are looked at, spread over a larger corpus."""
_FEWEST: Final = 10
"""Number of spans of a kind from which on the pairs decide; of rarer kinds all spans are kept."""
_LEAST_SHARE: Final = 0.5
"""Share of the spans of a kind that stand in the target too, from which on the kind is kept."""


def kept_kinds(corpus: EncodedCorpus, tokenizers: tuple[Tokenizer, Tokenizer]) -> list[str]:
    """Find the kinds of spans that the targets of training pairs keep.

    Args:
        corpus: training pairs.
        tokenizers: of source and target, whose texts can be restored from tokens.

    Returns:
        Names of rules, in their order. A kind is left out where the targets have less than half of its spans.
    """
    source_tokenizer, target_tokenizer = tokenizers
    counts, counts_in_targets = Counter[str](), Counter[str]()
    for index in range(0, len(corpus), max(1, len(corpus) // MOST_PAIRS)):
        source = source_tokenizer.decode(corpus.source[index][:-1].tolist())
        spans = find_kept(source)
        if not spans:
            continue
        target = target_tokenizer.decode(corpus.target[index][:-1].tolist())
        counts.update(span.kind for span in spans)
        counts_in_targets.update(span.kind for span in spans if source[span.start : span.end] in target)
    return [
        kind
        for kind in kept_rules()
        if counts[kind] < _FEWEST or counts_in_targets[kind] >= _LEAST_SHARE * counts[kind]
    ]
