"""Hypotheses, references and sources as items: checking, grouping and fingerprinting."""

import hashlib
import json
from collections.abc import Sequence

from heedful.errors import DataError
from heedful.evaluation.interface import References


def check_items(hypotheses: Sequence[str], references: References, sources: Sequence[str]) -> None:
    """Refuse hypotheses, references and sources that do not belong together.

    Args:
        hypotheses: one text per item.
        references: a list of texts per item, at least one each.
        sources: one text per item.

    Raises:
        DataError: there are no items, the numbers differ, the references are transposed, or an item is not text.
    """
    for name, texts in (("hypotheses", hypotheses), ("sources", sources)):
        _check_texts(name, texts)
    if isinstance(references, str):
        raise DataError("references must be a list of texts per item, got a single text")
    if not hypotheses:
        raise DataError("nothing to evaluate: there are no hypotheses")
    if len(sources) != len(hypotheses):
        raise DataError(f"{len(hypotheses)} hypotheses for {len(sources)} sources: there must be one for each")
    if len(references) != len(hypotheses):
        lengths = {len(texts) for texts in references if not isinstance(texts, str)}
        transposed = "; they look transposed: give one list per item, not one per set of references"
        raise DataError(
            f"{len(hypotheses)} hypotheses but references for {len(references)} items"
            f"{transposed if lengths == {len(hypotheses)} else ''}"
        )
    for index, texts in enumerate(references):
        _check_texts(f"references[{index}]", texts)
        if not texts:
            raise DataError(f"references[{index}] is empty: every item needs at least one reference")


def _check_texts(name: str, texts: Sequence[object]) -> None:
    if isinstance(texts, str):
        raise DataError(f"{name} must be a list of texts, got a single text")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"{name}[{index}] is not a text but {type(text).__name__}")


def items_digest(references: References, sources: Sequence[str]) -> str:
    """Return a fingerprint of a set of items, so that systems are compared only on the same set.

    Args:
        references: references of each item.
        sources: source of each item.

    Returns:
        A SHA-256 in hexadecimal.
    """
    digest = hashlib.sha256()
    for source, texts in zip(sources, references, strict=True):
        # JSON in ASCII keeps texts apart and can represent any text.
        digest.update(json.dumps([source, *texts]).encode("ascii") + b"\n")
    return digest.hexdigest()
