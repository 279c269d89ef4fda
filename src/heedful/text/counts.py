"""Counts formatted for people."""


def counted(count: int, noun: str, plural: str = "") -> str:
    """Write a count with its noun, in the plural unless the count is one.

    Args:
        count: 0 or more.
        plural: its plural; empty = noun and s.

    Returns:
        Such as "1 row" or "1,200 rows".

    Example:
        >>> counted(1, "row"), counted(1200, "row"), counted(2, "story", "stories")
        ('1 row', '1,200 rows', '2 stories')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
