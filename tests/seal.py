"""Seals of changed records, so that tests reach what stands behind the checksum."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.files.records import CHECKSUM, checksum


def write_sealed(path: Path, facts: Mapping[str, Any]) -> None:
    """Write a record with the checksum of its values."""
    content = json.loads(json.dumps({key: value for key, value in facts.items() if key != CHECKSUM}))
    path.write_text(json.dumps({**content, CHECKSUM: checksum(content)}), encoding="utf-8")
