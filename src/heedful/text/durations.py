"""Durations formatted for people."""


def duration(seconds: float) -> str:
    """Format a duration for people.

    Args:
        seconds: duration, 0 or more.

    Returns:
        A text such as "42 s", "3 min 05 s" or "2 h 10 min".

    Example:
        >>> duration(185), duration(7800)
        ('3 min 05 s', '2 h 10 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
