"""Names of classes in tables of Hugging Face's datasets, whose labels are numbers of them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from heedful.data.tables import is_columnar, table_batches

Names = Mapping[str, tuple[str, ...]]
"""Names of the classes of some columns, in the order of their numbers."""
_METADATA: Final = b"huggingface"
"""Key of the features of a table in the metadata of Parquet and Arrow."""


def class_names(features: Any) -> Names:
    """List the names of the classes of columns.

    Args:
        features: of a table of datasets, or as its `to_dict` and its files have them.

    Example:
        >>> class_names({"text": {"dtype": "string"}, "label": {"names": ["bad", "good"], "_type": "ClassLabel"}})
        {'label': ('bad', 'good')}
    """
    plain = features.to_dict() if hasattr(features, "to_dict") else features
    if not isinstance(plain, Mapping):
        return {}
    columns = cast(Mapping[Any, Any], plain)
    return {str(column): names for column, feature in columns.items() if (names := _names(feature))}


def stored_class_names(path: Path) -> Names:
    """List the names of the classes that a table in Parquet or Arrow has beside its rows.

    Args:
        path: a data file or folder.

    Returns:
        Names by column; none where the file has none.
    """
    if not is_columnar(path):
        return {}
    batch = next(table_batches(path), None)
    content = None if batch is None else (batch.schema.metadata or {}).get(_METADATA)
    try:
        stored = json.loads(content) if content else None
    except (ValueError, RecursionError):
        return {}
    info = cast(Mapping[str, Any], stored).get("info") if isinstance(stored, Mapping) else None
    return class_names(cast(Mapping[str, Any], info).get("features")) if isinstance(info, Mapping) else {}


def named_value(value: Any, names: Sequence[str]) -> Any:
    """Replace numbers of classes by their names.

    Args:
        value: a number, or a list of them.
        names: names of the classes; none = the value stays.

    Returns:
        Name or list of names; an empty text for -1, which stands for a missing label; other values as they are.

    Example:
        >>> named_value(1, ["bad", "good"]), named_value([0, 1], ["bad", "good"]), named_value(-1, ["bad", "good"])
        ('good', ['bad', 'good'], '')
    """
    if isinstance(value, list) and names:
        return [named_value(each, names) for each in cast(list[Any], value)]
    if type(value) is not int or not names:
        return value
    return "" if value == -1 else names[value] if 0 <= value < len(names) else value


def _names(feature: Any) -> tuple[str, ...]:
    """Names of the classes of a column, or of the elements of its lists; none if it has no classes."""
    if isinstance(feature, Mapping):
        kind = cast(Mapping[str, Any], feature)
        names = kind.get("names")
        if isinstance(names, list | tuple) and kind.get("_type", "ClassLabel") == "ClassLabel":
            return tuple(map(str, cast(Sequence[Any], names)))
        return _names(kind.get("feature"))
    if isinstance(feature, list) and len(cast(list[Any], feature)) == 1:
        return _names(cast(list[Any], feature)[0])
    return ()
