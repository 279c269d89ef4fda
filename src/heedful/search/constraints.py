"""Per-source decoding constraints: prefix, required phrases, banned phrases."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from heedful.errors import UsageError
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import BOS, EOS, PAD, UNK

Tokens = tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints on the outputs of one source, beside the search settings of all; token ids without BOS and EOS.

    Attributes:
        prefix: tokens that each output begins with, even if banned; they count towards lengths and scores.
        required: phrases that each output contains; two may overlap, and one listed twice need occur only once.
        banned: phrases that no output contains, except within the prefix.
        whole: those of the required phrases that end a word.
        continuing: tokens that would continue a word; none directly follows a whole phrase, except tokens of other
            required phrases.
        index: index of the source among all of the caller's: samples depend on it, not on the position in a batch.
            Below 0: the position in the batch.
    """

    prefix: Sequence[int] = ()
    required: Sequence[Sequence[int]] = ()
    banned: Sequence[Sequence[int]] = ()
    whole: Sequence[Sequence[int]] = ()
    continuing: Sequence[int] = ()
    index: int = -1

    @property
    def is_free(self) -> bool:
        """Whether there is no constraint."""
        return not (len(self.prefix) or len(self.required) or len(self.banned))


def holds(tokens: Sequence[int], phrase: Sequence[int]) -> bool:
    """Return whether a phrase occurs in a sequence.

    Args:
        phrase: the phrase; an empty one occurs everywhere.

    Example:
        >>> holds((4, 5, 6), (5, 6)), holds((4, 5, 6), (4, 6))
        (True, False)
    """
    wanted = tuple(phrase)
    starts = range(len(tokens) - len(wanted) + 1)
    return any(tuple(tokens[start : start + len(wanted)]) == wanted for start in starts)


def check_constraints(
    constraints: Sequence[Constraints] | None,
    prefixes: Sequence[Sequence[int]] | None,
    num_sources: int,
    config: SearchConfig,
    max_length: int,
) -> list[Constraints]:
    """Check constraints and bring them into one form.

    Args:
        constraints: one for each source; None for none.
        prefixes: shorthand for constraints with prefixes alone; None for none.
        num_sources: number of sources.
        max_length: most tokens of an output.

    Returns:
        Constraints of each source, with its index set and its phrases distinct; required phrases that occur in another
        required phrase are left out.

    Raises:
        UsageError: their number is wrong, or some contain ids that are no tokens, are too long, or contradict others or
            the settings.
    """
    if prefixes is not None:
        if constraints is not None:
            raise UsageError("prefixes: constraints are given as well; put the prefixes into them")
        if len(prefixes) != num_sources:
            raise UsageError(
                f"prefixes: {len(prefixes)} given for {num_sources} sources; give one each, empty for none"
            )
        constraints = [Constraints(prefix=prefix) for prefix in prefixes]
    elif constraints is None:
        return [Constraints(index=position) for position in range(num_sources)]
    elif len(constraints) != num_sources:
        raise UsageError(
            f"constraints: {len(constraints)} given for {num_sources} sources; give one each, Constraints() for none"
        )
    return [_checked(one, position, config, max_length) for position, one in enumerate(constraints)]


def least_length(constraints: Constraints) -> int:
    """Return the least length limit that leaves room for the constraints, however short the source.

    Args:
        constraints: from `check_constraints`.

    Returns:
        Tokens of the prefix, of each required phrase that is not in the prefix, one after the other, and EOS; where
        phrases of several tokens are banned, also a token between them, so that no two phrases form a third.

    Example:
        >>> least_length(Constraints(prefix=(4, 5), required=((4, 5), (6,)))), least_length(Constraints())
        (4, 1)
    """
    gap = needs_gaps(constraints)
    missing = [phrase for phrase in constraints.required if not holds(constraints.prefix, phrase)]
    return len(constraints.prefix) + sum(len(phrase) + gap for phrase in missing) + 1


def needs_gaps(constraints: Constraints) -> bool:
    """Return whether two required phrases in a row could form a banned one.

    Args:
        constraints: from `check_constraints`.

    Returns:
        Whether a phrase of several tokens is banned.
    """
    return any(len(phrase) > 1 for phrase in constraints.banned)


def after_whole(constraints: Constraints) -> list[list[int]]:
    """Return the tokens that may not directly follow each whole phrase.

    Args:
        constraints: from `check_constraints`.

    Example:
        >>> after_whole(Constraints(required=((4, 5), (6, 7)), whole=((4, 5),), continuing=(5, 6, 8)))
        [[5, 8]]
    """
    continuing = set(constraints.continuing)
    others = (
        (tuple(one) for one in constraints.required if tuple(one) != tuple(phrase)) for phrase in constraints.whole
    )
    return [sorted(continuing.difference(*phrases)) for phrases in others]


def _checked(constraints: Constraints, position: int, config: SearchConfig, max_length: int) -> Constraints:
    """The constraints of one source in their final form.

    Raises:
        UsageError: the constraints contradict each other, the settings or the length limit.
    """
    prefix = _tokens(constraints.prefix, f"prefixes: that of source {position}")
    if len(prefix) >= max_length:
        raise UsageError(f"prefixes: source {position} has {len(prefix)} tokens, an output at most {max_length}")
    required = _phrases(constraints.required, f"required phrases: one of source {position}")
    banned = _phrases(constraints.banned, f"banned phrases: one of source {position}")
    whole = _phrases(constraints.whole, f"whole phrases: one of source {position}")
    continuing = _tokens(constraints.continuing, f"continuing: source {position}") if whole else ()
    checked = Constraints(
        prefix=prefix,
        required=[one for one in required if not any(one != other and holds(other, one) for other in required)],
        banned=banned,
        whole=whole,
        continuing=continuing,
        index=position if constraints.index < 0 else constraints.index,
    )
    if fault := why_impossible(checked, config):
        raise UsageError(f"required phrases: source {position}: {fault}")
    if (least := least_length(checked)) > max_length:
        raise UsageError(
            f"required phrases: source {position} needs room for {least} tokens, an output has at most {max_length}"
        )
    return checked


def why_impossible(constraints: Constraints, config: SearchConfig) -> str:
    """Say why a search cannot satisfy the required phrases.

    Returns:
        The reason; empty if it can, or if there are none.
    """
    if not constraints.required:
        return ""
    if config.method == "sampling":
        return "sampling cannot guarantee a phrase; set method = beam, or leave the phrases out"
    if config.no_repeat_ngram_size:
        return "no_repeat_ngram_size may make a phrase impossible on the way; leave one of the two out"
    if config.forbid_unknown and any(UNK in phrase for phrase in constraints.required):
        return "one contains the unknown token, which forbid_unknown forbids"
    for phrase in constraints.required:
        for other in constraints.banned:
            if holds(phrase, other):
                return f"{list(phrase)} contains {list(other)}, which is banned"
    return ""


def _phrases(phrases: Sequence[Sequence[int]], name: str) -> list[Tokens]:
    """Phrases as tuples, each once.

    Raises:
        UsageError: a phrase is empty or contains an id that is no token.
    """
    checked = list(dict.fromkeys(_tokens(phrase, name) for phrase in phrases))
    if () in checked:
        raise UsageError(f"{name} is empty; leave it out")
    return checked


def _tokens(ids: Sequence[int], name: str) -> Tokens:
    """Ids as a tuple.

    Raises:
        UsageError: an id is no token.
    """
    tokens = tuple(int(token) for token in ids)
    if any(token < 0 or token in (PAD, BOS, EOS) for token in tokens):
        raise UsageError(f"{name} contains PAD, BOS, EOS or a negative id; give tokens only")
    return tokens
