"""Levenshtein distance by bit vectors: a whole column of the table is two integers.

Myers 1999, doi:10.1145/316542.316550, in Hyyro's 2003 form for the distance of whole sequences. Python's integers
have any length, so there are no blocks: time is len(a) * len(b) / 30 machine operations.
"""

from collections.abc import Hashable, Sequence


def edit_distance(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Count the insertions, deletions and substitutions that turn one sequence into the other.

    Args:
        a: tokens, or a text as a sequence of characters.
        b: the other sequence.

    Returns:
        The smallest number of edits, 0 to max(len(a), len(b)).

    Example:
        >>> edit_distance("kitten", "sitting"), edit_distance(["K", "AE", "T"], ["K", "AA", "R", "T"])
        (3, 2)
    """
    if not a:
        return len(b)
    positions: dict[Hashable, int] = {}
    for index, token in enumerate(a):
        positions[token] = positions.get(token, 0) | 1 << index
    everywhere = (1 << len(a)) - 1
    last = 1 << (len(a) - 1)
    # Bit i of `up` (`down`): entry i + 1 of the current column of the table is 1 above (below) entry i.
    up, down, distance = everywhere, 0, len(a)
    for token in b:
        equal = positions.get(token, 0)
        diagonal = (((equal & up) + up) ^ up) | equal
        right_up = (down | ~(diagonal | up)) & everywhere
        right_down = up & diagonal
        if right_up & last:
            distance += 1
        elif right_down & last:
            distance -= 1
        # The first row of the table counts b's tokens, so it always rises.
        right_up = right_up << 1 | 1
        right_down <<= 1
        vertical = equal | down
        up = (right_down | ~(vertical | right_up)) & everywhere
        down = right_up & vertical & everywhere
    return distance
