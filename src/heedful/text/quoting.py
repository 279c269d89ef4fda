"""Quotation of texts in few characters."""


def shortened(text: str, most: int = 40) -> str:
    """Quote a text in about as many characters at most.

    Args:
        text: any text.
        most: largest number of its characters.

    Returns:
        The quoted text, with an ellipsis if it was cut.

    Example:
        >>> shortened("one two three", 7)
        "'one two...'"
    """
    return repr(text if len(text) <= most else text[:most] + "...")
