"""Table of the mechanisms that each model trains: every score x normalizer x window, or why it is refused."""

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES
from heedful.models.attention_config import AttentionConfig, Role, why_unsuitable

WINDOWS: Final = {"global": "g", "local-m": "m", "local-p": "p"}
"""Windows, and the letters that stand for them."""


EVERY: Final = "all scores"
"""Cell of a row that all scores share."""


class Place(NamedTuple):
    """An attention of a model, with the sizes of the middle preset."""

    name: str
    query_size: int
    key_size: int
    num_heads: int = 0
    role: Role = "source"


PLACES: Final = (
    Place("RNNsearch", 384, 768),
    Place("Luong", 256, 256),
    Place("Transformer, `attention`", 64, 64, 4),
    Place("Transformer, `encoder_attention`", 64, 64, 4, "encoder"),
    Place("Transformer, `decoder_attention`", 64, 64, 4, "decoder"),
)


def variants() -> dict[str, Mapping[str, object]]:
    """Name the columns: softmax, softmax with a temperature, and every other normalizer.

    Returns:
        Heading -> settings.
    """
    others = {f"`{name}`": {"normalizer": name} for name in NORMALIZERS if name != "softmax"}
    return {"`softmax`": {"normalizer": "softmax"}, "`temperature`": {"temperature": 0.5}, **others}


def model_tables() -> dict[str, list[tuple[str, ...]]]:
    """Ask the configurations what they take.

    Returns:
        "models": a row for each attention and the scores that share it; "refusals": the reasons, by the numbers that
        stand in its cells.
    """
    return _model_tables(tuple(SCORES), tuple(NORMALIZERS))


@cache
def _model_tables(scores: tuple[str, ...], normalizers: tuple[str, ...]) -> dict[str, list[tuple[str, ...]]]:
    reasons: dict[str, int] = {}
    rows: list[tuple[str, ...]] = []
    for place in PLACES:
        by_cells: dict[tuple[str, ...], list[str]] = {}
        for score in scores:
            cells = tuple(_cell(place, score, settings, reasons) for settings in variants().values())
            by_cells.setdefault(cells, []).append(f"`{score}`")
        named = {cells: ", ".join(names) if len(names) < len(scores) else EVERY for cells, names in by_cells.items()}
        rows += [(place.name, names, *cells) for cells, names in named.items()]
    return {"models": rows, "refusals": [(str(number), reason) for reason, number in reasons.items()]}


def _cell(place: Place, score: str, settings: Mapping[str, object], reasons: dict[str, int]) -> str:
    letters: list[str] = []
    numbers: set[int] = set()
    for window, letter in WINDOWS.items():
        table = {"score": score, "window": window, **settings}
        reason, mark = _refusal(place, table), ""
        if "differ" in reason:
            reason, mark = _refusal(place, {**table, "projection_size": 64}), "+"
        if reason:
            numbers.add(reasons.setdefault(reason, len(reasons) + 1))
        else:
            letters.append(letter + mark)
    return " ".join((*letters, *map(str, sorted(numbers))))


def _refusal(place: Place, table: Mapping[str, object]) -> str:
    config = AttentionConfig.model_validate(table)
    reason = why_unsuitable(config, place.query_size, place.key_size, place.num_heads, place.role)
    return reason.partition("; got ")[0]  # a message also has the sizes of its call
