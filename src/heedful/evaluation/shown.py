"""Reports that notebooks show as text in columns."""

from abc import ABC, abstractmethod
from html import escape


class Shown(ABC):
    r"""Report whose tables a notebook shows as they are printed.

    Example:
        >>> class Small(Shown):
        ...     def to_text(self) -> str:
        ...         return "BLEU  25.1\\n"
        >>> Small()._repr_html_()
        '<pre dir="auto">BLEU  25.1\\n</pre>'
    """

    @abstractmethod
    def to_text(self) -> str:
        """Return tables whose columns are aligned by spaces; lines end in a newline."""

    def _repr_html_(self) -> str:
        return f'<pre dir="auto">{escape(self.to_text())}</pre>'
