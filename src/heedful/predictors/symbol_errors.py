"""Errors of a model that writes single words, by symbols: phones of pronunciations, letters of inflected forms."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from heedful.data.prepare import EvaluationSet
from heedful.evaluation.metrics.edit_distance import edit_distance
from heedful.evaluation.symbol_alignment import align_symbols
from heedful.pages.symbol_errors import Pair, SymbolErrorPage, WrongWord
from heedful.predictors.label_errors import scores_by_length

MOST_WRONG: Final = 30
"""Number of wrong words that are shown in each order."""
_EXAMPLES: Final = 3
"""Number of words that are shown for an error."""


def symbol_errors(
    model: str,
    items: EvaluationSet,
    outputs: Sequence[str],
    probabilities: Sequence[float],
    divide: Callable[[str], list[str]],
) -> SymbolErrorPage:
    """Collect what is wrong in outputs.

    Args:
        model: name of the model.
        items: words with their references.
        outputs: output for each.
        probabilities: probability that the model gave each output.
        divide: lists the symbols of a word, from `heedful.evaluation.symbol_alignment.symbol_division`.

    Returns:
        The page. Outputs are compared with the closest of their references, as by the error rates.
    """
    separator = " " if divide is str.split else ""
    symbols: Counter[str] = Counter()
    errors: Counter[Pair] = Counter()
    examples: defaultdict[Pair, list[WrongWord]] = defaultdict(list)
    wrong: list[WrongWord] = []
    right: list[bool] = []
    for source, texts, output, probability in zip(items.sources, items.references, outputs, probabilities, strict=True):
        written, wanted = divide(output), [divide(text) for text in texts]
        _, _, closest = min((edit_distance(written, one), len(one), one) for one in wanted)
        symbols.update(closest)
        word = WrongWord(source, align_symbols(closest, written), separator, probability)
        right.append(not word.num_wrong)
        if right[-1]:
            continue
        wrong.append(word)
        for pair in word.pairs:
            if pair[0] != pair[1]:
                errors[pair] += 1
                if len(examples[pair]) < _EXAMPLES and word not in examples[pair]:
                    examples[pair].append(word)
    return SymbolErrorPage(
        model,
        len(right),
        sum(right),
        symbols,
        errors,
        examples,
        scores_by_length([len(source) for source in items.sources], right),
        sorted(wrong, key=lambda one: -one.probability)[:MOST_WRONG],
        sorted((one for one in wrong if one.num_wrong > 1), key=lambda one: (-one.num_wrong, -one.probability))[
            :MOST_WRONG
        ],
    )
