"""Extension of the reader of docstrings: our section `Example` becomes its `Examples`, whose code is shown as code."""

import re
from typing import Any

from griffe import Extension, Object


class Examples(Extension):
    """Renames the section in the docstring of every class, function and value."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rename the section of one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:", "Examples:", obj.docstring.value, flags=re.MULTILINE)
