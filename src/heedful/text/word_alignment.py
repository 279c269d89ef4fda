"""Word alignment of sentence pairs by IBM model 1 or 2, learned from the pairs alone."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeVar, final, get_args

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UsageError, did_you_mean
from heedful.text.links import Links, combine_links

Token = TypeVar("Token", bound=Hashable)
Pair = tuple[Sequence[str], Sequence[str]]
"""Source words and target words."""
Method = Literal["forward", "backward", "intersection", "union", "grow-diag"]
AlignmentModel = Literal["ibm1", "ibm2"]
"""ibm1: every source position is equally probable. ibm2: positions near the diagonal of the pair are more probable."""

TENSION: Final = 4.0
"""Tension lambda of IBM model 2, the initial value of Dyer et al. 2013."""
EMPTY_SHARE: Final = 0.08
"""Probability p_0 of the empty source word in IBM model 2; Dyer et al. 2013."""
CONCENTRATION: Final = 0.01
"""Concentration of the Dirichlet prior of IBM model 2's translations; Dyer et al. 2013."""

_NUM_ITERATIONS: Final = 5
LARGEST_PAIR: Final = 40_000
"""Maximum number of source words times target words (200 words on each side); `align_pairs` skips larger pairs."""


def align_pairs(
    pairs: Sequence[Pair],
    method: Method = "intersection",
    num_iterations: int = 5,
    model: AlignmentModel = "ibm1",
) -> list[Links]:
    """Align words by IBM model 1 or 2, from the pairs alone.

    The translation probabilities t(target word | source word) are learned by expectation maximisation from uniform
    values, with an empty source word for target words without a counterpart. Each target word is then linked to the
    source word with the largest t, the leftmost if several are equal. Brown et al. 1993, J93-2003, section 4.1.

    Model 2, in the form of Dyer et al. 2013, N13-1073, multiplies t by the probability of the position: `EMPTY_SHARE`
    for the empty word, and for the i-th of m source words of the j-th of n target words a part of the rest, in
    proportion to exp(-`TENSION` |i/m - j/n|). Its t has a sparse Dirichlet prior, learned by variational Bayes.

    Args:
        method: "forward" links each target word to one source word, "backward" each source word to one target word;
            the others combine both directions, see `combine_links`. Fewer links make a cleaner dictionary.
        num_iterations: iterations of expectation maximisation, 1 or more.

    Returns:
        The links (source, target) of each pair; none for a pair larger than `LARGEST_PAIR`.

    Raises:
        UsageError: the method or the model is unknown, or num_iterations is below 1.

    Cost: for 29,000 pairs of 13 words, 4 seconds on one core for both directions, and 450 MB of memory: 80 bytes for
        each combination of a source word and a target word of one pair.
    """
    if method not in get_args(Method):
        raise UsageError(f"no method {method!r}{did_you_mean(method, get_args(Method))}")
    if model not in get_args(AlignmentModel):
        raise UsageError(f"no alignment model {model!r}{did_you_mean(model, get_args(AlignmentModel))}")
    if num_iterations < 1:
        raise UsageError(f"num_iterations must be 1 or more, got {num_iterations}")
    if method == "forward":
        return _align_targets(pairs, num_iterations, model)
    turned = _align_targets([(target, source) for source, target in pairs], num_iterations, model)
    backward = [sorted((source, target) for target, source in links) for links in turned]
    if method == "backward":
        return backward
    forward = _align_targets(pairs, num_iterations, model)
    return [combine_links(one, other, method) for one, other in zip(forward, backward, strict=True)]


def _align_targets(pairs: Sequence[Pair], num_iterations: int, model: AlignmentModel) -> list[Links]:
    """Link each target word to one source word or to none; see `align_pairs`."""
    used = [pair for pair in pairs if _is_used(pair)]
    if not used:
        return [[] for _ in pairs]
    learned = _learn(used, num_iterations, model)
    shares, starts = learned.shares, learned.starts
    best = np.flatnonzero(shares == np.repeat(np.maximum.reduceat(shares, starts), learned.num_places))
    # Leftmost best source position of each target token.
    chosen = learned.positions[best[np.searchsorted(best, starts)]]
    rows = iter(np.split(chosen, np.cumsum(learned.num_targets)[:-1]))
    return [_links(next(rows).tolist(), len(pair[0])) if _is_used(pair) else [] for pair in pairs]


def translation_probabilities(
    pairs: Sequence[tuple[Sequence[Token], Sequence[Token]]], num_iterations: int = 5
) -> dict[Token, dict[Token, float]]:
    """Learn the translation probabilities t(target token | source token) of IBM model 1, as `align_pairs` does.

    Args:
        pairs: source tokens and target tokens.
        num_iterations: iterations of expectation maximisation, 1 or more.

    Returns:
        Probabilities of the target tokens that occur in a pair with each source token; without the empty word.

    Cost: half of that of `align_pairs`.

    Example:
        >>> table = translation_probabilities([(["das", "Haus"], ["the", "house"]), (["das", "Buch"], ["the", "book"])])
        >>> max(table["Haus"], key=table["Haus"].get)
        'house'
    """
    used = [pair for pair in pairs if _is_used(pair)]
    table: dict[Token, dict[Token, float]] = defaultdict(dict)
    if not used:
        return table
    learned = _learn(used, num_iterations, "ibm1")
    sources, targets = (tokens.tolist() for tokens in np.divmod(learned.cells, len(learned.target_names)))
    for source, target, probability in zip(sources, targets, learned.translation.tolist(), strict=True):
        if (token := learned.source_names[source]) is not None:
            table[token][learned.target_names[target]] = probability
    return table


def associations(pairs: Sequence[Pair], least: float) -> dict[str, dict[str, float]]:
    """Learn how strongly words are associated: the geometric mean of t(target | source) and t(source | target).

    Both are those of IBM model 1, as of `align_pairs`. The mean is small for words that are frequent on one side alone.

    Args:
        least: smallest association that is kept, above 0.

    Returns:
        Associations in [least, 1] of target words, by source word.

    Cost: that of `align_pairs`.

    Example:
        >>> table = associations([(["das", "Haus"], ["the", "house"]), (["das", "Buch"], ["the", "book"])], 0.5)
        >>> {source: [*targets] for source, targets in table.items()}
        {'das': ['the'], 'Haus': ['house'], 'Buch': ['book']}
    """
    used = [pair for pair in pairs if _is_used(pair)]
    if not used:
        return {}
    forward = _learn(used, _NUM_ITERATIONS, "ibm1")
    backward = _learn([(target, source) for source, target in used], _NUM_ITERATIONS, "ibm1")
    num_targets = len(forward.target_names)
    sources = {name: number for number, name in enumerate(forward.source_names)}
    targets = {name: number for number, name in enumerate(forward.target_names)}
    own_targets, own_sources = np.divmod(backward.cells, len(backward.target_names))
    # Number of each target word in the forward table; -1 for the empty word.
    renamed = np.array([targets.get(name, -1) for name in backward.source_names])[own_targets]
    cells = np.array([sources[name] for name in backward.target_names])[own_sources] * num_targets + renamed
    both, first, second = np.intersect1d(
        forward.cells, np.where(renamed < 0, -1, cells), assume_unique=False, return_indices=True
    )
    means = np.sqrt(forward.translation[first] * backward.translation[second])
    table: dict[str, dict[str, float]] = {}
    strong = np.flatnonzero(means >= least)
    for source, target, mean in zip(*np.divmod(both[strong], num_targets), means[strong].tolist(), strict=True):
        table.setdefault(forward.source_names[source], {})[forward.target_names[target]] = mean
    return table


@final
class _Learned(NamedTuple):
    """Translation probabilities of IBM model 1 or 2, and the shares of source tokens in the tokens of each pair.

    A place is a combination of a target token and a source token of one pair; places of a target token are contiguous.
    """

    translation: NDArray[np.float64]
    """Probability [cell]: t(target token | source token) of each two tokens that share a sentence pair."""
    cells: NDArray[np.int64]
    """Number of the source token times the number of target tokens, plus the number of the target token [cell]."""
    source_names: list[Any]
    """Source tokens by number; None = the empty word."""
    target_names: list[Any]
    shares: NDArray[np.float64]
    """Translation probability, times that of the position [place]."""
    positions: NDArray[np.int64]
    """Position of the source token [place]."""
    starts: NDArray[np.int64]
    """First place [target token]."""
    num_places: NDArray[np.int64]
    """Number of places [target token]."""
    num_targets: NDArray[np.int64]
    """Number of target tokens [pair]."""


def _learn(
    used: Sequence[tuple[Sequence[Token], Sequence[Token]]], num_iterations: int, model: AlignmentModel
) -> _Learned:
    """Learn an alignment model from pairs none of which is empty or too large."""
    # The empty word comes last, so that a real word wins a tie.
    sources, num_sources, source_names = _number([[*source, None] for source, _ in used])
    targets, num_targets, target_names = _number([target for _, target in used])
    num_places = np.repeat(num_sources, num_targets)
    starts = np.cumsum(num_places) - num_places
    positions = np.arange(num_places.sum()) - np.repeat(starts, num_places)
    place_sources = np.repeat(np.repeat(np.cumsum(num_sources) - num_sources, num_targets), num_places) + positions
    cells, place_cells = np.unique(
        sources[place_sources] * len(target_names) + np.repeat(targets, num_places), return_inverse=True
    )
    del place_sources
    prior, concentration = None, 0.0
    if model == "ibm2":
        target_positions = np.arange(num_targets.sum()) - np.repeat(np.cumsum(num_targets) - num_targets, num_targets)
        relative = np.repeat((target_positions + 1) / np.repeat(num_targets, num_targets), num_places)
        prior, concentration = _near_diagonal(positions, relative, starts, num_places), CONCENTRATION
    translation = _expectation_maximisation(
        place_cells, cells // len(target_names), starts, num_places, num_iterations, prior, concentration
    )
    shares = translation[place_cells] if prior is None else translation[place_cells] * prior
    return _Learned(translation, cells, source_names, target_names, shares, positions, starts, num_places, num_targets)


def _is_used(pair: tuple[Sequence[object], Sequence[object]]) -> bool:
    return 0 < len(pair[0]) * len(pair[1]) <= LARGEST_PAIR


def _links(chosen: Sequence[int], source_length: int) -> Links:
    return sorted((source, target) for target, source in enumerate(chosen) if source < source_length)


def _number(sentences: Sequence[Sequence[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Any]]:
    """Token numbers of all sentences, concatenated; the length of each sentence; and the tokens by number."""
    numbers: dict[Any, int] = {}
    flat = [numbers.setdefault(word, len(numbers)) for words in sentences for word in words]
    lengths = [len(words) for words in sentences]
    return np.array(flat, dtype=np.int64), np.array(lengths, dtype=np.int64), list(numbers)


def _expectation_maximisation(
    place_cells: NDArray[np.int64],
    cell_sources: NDArray[np.int64],
    starts: NDArray[np.int64],
    num_places: NDArray[np.int64],
    num_iterations: int,
    prior: NDArray[np.float64] | None,
    concentration: float,
) -> NDArray[np.float64]:
    """Translation probabilities [cell]: t(target word | source word) of each two words that share a sentence pair.

    With a prior [place] of positions, shares are in proportion to it too. With a concentration above 0, a translation
    is exp(E[log t]) under the posterior Dirichlet distribution.
    """
    translation = np.ones(len(cell_sources))
    for _ in range(num_iterations):
        shares = translation[place_cells]
        if prior is not None:
            shares *= prior
        shares /= np.repeat(np.add.reduceat(shares, starts), num_places)
        expected = np.bincount(place_cells, shares, minlength=len(cell_sources)) + concentration
        totals = np.bincount(cell_sources, expected)[cell_sources]
        translation = np.exp(_digamma(expected) - _digamma(totals)) if concentration else expected / totals
    return translation


def _near_diagonal(
    positions: NDArray[np.int64],
    relative: NDArray[np.float64],
    starts: NDArray[np.int64],
    num_places: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Prior probability [place] of each source position, given the relative position [place] of the target word."""
    num_words = np.repeat(num_places - 1, num_places)  # without the empty word, which is the last place
    nearness = np.exp(-TENSION * np.abs((positions + 1) / num_words - relative))
    nearness[positions == num_words] = 0.0
    prior = (1 - EMPTY_SHARE) * nearness / np.repeat(np.add.reduceat(nearness, starts), num_places)
    prior[positions == num_words] = EMPTY_SHARE
    return prior


def _digamma(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Digamma function of positive numbers: recurrence to 6 or more, then the asymptotic series; error below 1e-9."""
    result, shifted = np.zeros_like(values), values.copy()
    for _ in range(6):
        result -= 1 / shifted
        shifted += 1
    square = 1 / shifted**2
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    return result + np.log(shifted) - 0.5 / shifted - series
