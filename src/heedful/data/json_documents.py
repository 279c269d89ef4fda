"""JSON documents as rows: arrays, data frames, SQuAD's paragraphs with questions, and captions of COCO and Karpathy."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from heedful.errors import DataError
from heedful.text.lines import open_bytes

SUFFIX: Final = ".json"
MOST_BYTES: Final = 1 << 30
"""Largest size of a document, which is read as a whole."""
_HEAD_BYTES: Final = 1 << 16
_KEYS: Final = frozenset({"data", "images", "annotations", "paragraphs"})
"""Keys by one of which an object on a single line is recognised as a document."""


def is_json_document(path: Path) -> bool:
    """Tell whether a file is one JSON value, and not one on each line.

    Returns:
        Whether the name ends in .json or .json.gz, and the file begins with an array, with an object of several lines,
        or with an object that holds the rows of a known format.
    """
    if Path(path.name.removesuffix(".gz")).suffix.lower() != SUFFIX or not path.is_file():
        return False
    try:
        with open_bytes(path) as stream:
            head = stream.read(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    except (DataError, EOFError, OSError):
        return False
    if not head.startswith(b"{"):
        return head.startswith(b"[")
    line, _, rest = head.partition(b"\n")
    try:
        first: object = json.loads(line)
    except ValueError:
        # The beginning of a long line, or an object of several lines.
        is_long = len(head) > _HEAD_BYTES // 2 and not rest
        return not is_long or any(f'"{key}"'.encode() in head[:4096] for key in _KEYS)
    except RecursionError:
        return False
    return not rest.strip() and (not _KEYS.isdisjoint(cast(dict[str, Any], first)) or _is_frame(first))


def document_rows(path: Path) -> Iterator[Any]:
    """Read the rows of a JSON document.

    Yields:
        A value for each row, an object if the document is sound.

    Raises:
        DataError: the file is no JSON, too large, or holds no rows.
    """
    try:
        with open_bytes(path) as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise DataError(f"{path}: larger than {MOST_BYTES >> 30} GiB; write one object a line, as JSONL")
        value: object = json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise DataError(f"{path}: JSON nested too deeply") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 at byte {error.start + 1}; convert it: iconv -t UTF-8") from None
    except (ValueError, EOFError, OSError) as error:
        raise DataError(f"{path}: invalid JSON: {error}") from None
    rows = _rows_of(value)
    if rows is None:
        expected = '[{"text": "...", "label": "..."}, ...], a data frame, SQuAD, or captions of COCO'
        raise DataError(f"{path}: JSON without rows; give {expected}")
    return rows


def _rows_of(value: Any) -> Iterator[Any] | None:
    if isinstance(value, list):
        return map(_row, cast(list[Any], value))
    if not isinstance(value, dict):
        return None
    parts = cast(dict[str, Any], value)
    if isinstance(parts.get("annotations"), list) and isinstance(parts.get("images"), list):
        return _coco(parts)
    if isinstance(parts.get("images"), list):
        return _karpathy(parts["images"])
    data = parts.get("data")
    if isinstance(data, list) and isinstance(parts.get("columns"), list):  # pandas, orient="split"
        return (dict(zip(map(str, parts["columns"]), row, strict=False)) for row in data)
    if isinstance(data, list):
        articles = cast(list[Any], data)
        is_squad = any(isinstance(one, dict) and "paragraphs" in one for one in articles[:1])
        return _squad(articles) if is_squad else map(_row, articles)
    if "paragraphs" in parts:
        return _squad([parts])
    if _is_frame(value):
        columns = {name: list(own.values()) if isinstance(own, dict) else own for name, own in parts.items()}
        return (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
    lists = [own for own in parts.values() if isinstance(own, list)]
    return map(_row, lists[0]) if len(lists) == 1 else None


def _is_frame(value: Any) -> bool:
    """Whether an object has equally long columns, of lists or of objects by row, as pandas writes them."""
    columns = [*cast(dict[str, Any], value).values()] if isinstance(value, dict) else []
    kinds = {type(column) for column in columns}
    return len(columns) > 1 and len(kinds) == 1 and kinds <= {list, dict} and len({len(each) for each in columns}) == 1


def _row(value: Any) -> Any:
    """Row of an array: spaCy writes [text, annotations], others [text, label]."""
    if not isinstance(value, list) or len(cast(list[Any], value)) != 2:
        return value
    text, other = cast(list[Any], value)
    return {"text": text, **other} if isinstance(other, dict) else {"text": text, "label": other}


def _objects(values: Any) -> Iterator[Mapping[str, Any]]:
    return (each for each in (values if isinstance(values, Sequence) else ()) if isinstance(each, Mapping))


def _coco(parts: Mapping[str, Any]) -> Iterator[Any]:
    names = {image.get("id"): image.get("file_name") for image in _objects(parts["images"])}
    for one in _objects(parts["annotations"]):
        yield {"image": names.get(one.get("image_id")), "caption": one.get("caption")}


def _karpathy(images: list[Any]) -> Iterator[Any]:
    for image in _objects(images):
        folder, name = image.get("filepath"), image.get("filename") or image.get("file_name")
        for sentence in _objects(image.get("sentences")):
            yield {"image": f"{folder}/{name}" if folder else name, "caption": sentence.get("raw")}


def _squad(articles: list[Any]) -> Iterator[Any]:
    for paragraph in (one for article in _objects(articles) for one in _objects(article.get("paragraphs"))):
        for question in _objects(paragraph.get("qas")):
            row = {"context": paragraph.get("context"), "question": question.get("question")}
            if "answers" in question:  # else they are not known
                answers = [*_objects(question["answers"])]
                row["answers"] = {key: [one.get(key) for one in answers] for key in ("text", "answer_start")}
            yield row | {"is_impossible": question.get("is_impossible")}
