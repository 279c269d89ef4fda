"""What is asked of the outputs of single sources: what they begin with, and which phrases they hold or do not hold."""

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
    """What one source asks of its outputs, beside the settings that hold for all. Tokens are ids, without marks.

    Attributes:
        prefix: tokens each output begins with, whatever is banned; they count towards lengths and scores.
        required: phrases each output holds somewhere; two may share tokens, and one named twice need stand but once.
        banned: phrases no output holds, but for what stands in the prefix.
        index: which source this is among all of the caller's: samples depend on it, and not on the source's place in a
            batch. Below 0: its place in the batch.
    """

    prefix: Sequence[int] = ()
    required: Sequence[Sequence[int]] = ()
    banned: Sequence[Sequence[int]] = ()
    index: int = -1

    @property
    def is_free(self) -> bool:
        """Whether the outputs may be anything."""
        return not (len(self.prefix) or len(self.required) or len(self.banned))


def holds(tokens: Sequence[int], phrase: Sequence[int]) -> bool:
    """Tell whether a phrase stands in a sequence.

    Args:
        tokens: the sequence.
        phrase: the phrase; an empty one stands everywhere.

    Returns:
        Whether it does.

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
    """Check what is asked of the outputs and bring it into one form.

    Args:
        constraints: one for each source; None for none.
        prefixes: short for constraints that ask for nothing else; None for none.
        num_sources: how many sources there are.
        config: settings that hold for all.
        max_length: most tokens of an output.

    Returns:
        One demand for each source, its index set, its phrases distinct; of the required ones, those that stand in
        another are left out.

    Raises:
        UsageError: their number is wrong, one holds what is no token, is too long, or contradicts another or the
            settings.
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
        return [Constraints(index=place) for place in range(num_sources)]
    elif len(constraints) != num_sources:
        raise UsageError(
            f"constraints: {len(constraints)} given for {num_sources} sources; give one each, Constraints() for none"
        )
    return [_checked(constraints_of, place, config, max_length) for place, constraints_of in enumerate(constraints)]


def least_length(constraints_of: Constraints) -> int:
    """Return how many tokens an output is given room for, however short its source.

    Args:
        constraints_of: from `check_constraints`.

    Returns:
        Its prefix, each required phrase that is not in the prefix, one after the other, and an end mark; where phrases
        of several tokens are banned, a token between them too, so that no two phrases make a third.

    Example:
        >>> least_length(Constraints(prefix=(4, 5), required=((4, 5), (6,)))), least_length(Constraints())
        (4, 1)
    """
    gap = needs_gaps(constraints_of)
    missing = [phrase for phrase in constraints_of.required if not holds(constraints_of.prefix, phrase)]
    return len(constraints_of.prefix) + sum(len(phrase) + gap for phrase in missing) + 1


def needs_gaps(constraints_of: Constraints) -> bool:
    """Tell whether one required phrase after another could make a banned one.

    Args:
        constraints_of: from `check_constraints`.

    Returns:
        Whether a phrase of several tokens is banned.
    """
    return any(len(phrase) > 1 for phrase in constraints_of.banned)


def _checked(constraints_of: Constraints, place: int, config: SearchConfig, max_length: int) -> Constraints:
    """One demand in its final form.

    Raises:
        UsageError: it is wrong.
    """
    prefix = _tokens(constraints_of.prefix, f"prefixes: that of source {place}")
    if len(prefix) >= max_length:
        raise UsageError(f"prefixes: source {place} has {len(prefix)} tokens, an output at most {max_length}")
    required = _phrases(constraints_of.required, f"required phrases: one of source {place}")
    banned = _phrases(constraints_of.banned, f"banned phrases: one of source {place}")
    checked = Constraints(
        prefix=prefix,
        required=[one for one in required if not any(one != other and holds(other, one) for other in required)],
        banned=banned,
        index=place if constraints_of.index < 0 else constraints_of.index,
    )
    if required and (fault := _fault(checked, config)):
        raise UsageError(f"required phrases: source {place}: {fault}")
    if (least := least_length(checked)) > max_length:
        raise UsageError(
            f"required phrases: source {place} needs room for {least} tokens, an output has at most {max_length}"
        )
    return checked


def _fault(constraints_of: Constraints, config: SearchConfig) -> str:
    """Why the required phrases of a demand cannot be had; empty if they can."""
    if config.method == "sampling":
        return "sampling cannot promise a phrase; set method = beam, or leave the phrases out"
    if config.no_repeat_ngram_size:
        return "no_repeat_ngram_size may make a phrase impossible on the way; leave one of the two out"
    if config.forbid_unknown and any(UNK in phrase for phrase in constraints_of.required):
        return "one holds the unknown token, which forbid_unknown forbids"
    for phrase in constraints_of.required:
        for other in constraints_of.banned:
            if holds(phrase, other):
                return f"{list(phrase)} holds {list(other)}, which is banned"
    return ""


def _phrases(phrases: Sequence[Sequence[int]], name: str) -> list[Tokens]:
    """Phrases as tuples, each once.

    Raises:
        UsageError: one is empty or holds what is no token.
    """
    checked = list(dict.fromkeys(_tokens(phrase, name) for phrase in phrases))
    if () in checked:
        raise UsageError(f"{name} is empty; leave it out")
    return checked


def _tokens(ids: Sequence[int], name: str) -> Tokens:
    """Ids as a tuple.

    Raises:
        UsageError: one is no token.
    """
    tokens = tuple(int(token) for token in ids)
    if any(token < 0 or token in (PAD, BOS, EOS) for token in tokens):
        raise UsageError(f"{name} holds a mark or a negative id; give tokens only")
    return tokens
