"""Counts formatted for people."""


def counted(count: int, noun: str) -> str:
    """Write a count with its noun, in the plural unless the count is one.

    Args:
        count: 0 or more.
        noun: a noun whose plural ends in s.

    Returns:
        Such as "1 row" or "1,200 rows".

    Example:
        >>> counted(1, "row"), counted(1200, "row"), counted(0, "text")
        ('1 row', '1,200 rows', '0 texts')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
