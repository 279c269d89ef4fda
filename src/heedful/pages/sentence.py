"""Data of the page of one sentence: words, attention of every layer and head, alternatives, and the search."""

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, final, get_args

import numpy as np
from numpy.typing import NDArray

from heedful.pages.words import Words
from heedful.search.trace import SearchTrace

MeasureName = Literal["attention", "value-norm", "rollout", "alti", "gradients"]
"""Measure of the influence of positions, a key of `heedful.inspection.measures.table.MEASURES`."""
MEASURE_NAMES: Final[tuple[MeasureName, ...]] = get_args(MeasureName)
RoleName = Literal["cross", "encoder", "decoder"]
"""Part of a model that attends, as in `heedful.inspection.layers`."""
ROLE_NAMES: Final[tuple[RoleName, ...]] = get_args(RoleName)

VIEW_FORMAT: Final = 1
"""Version of the page's data."""


@final
@dataclass(frozen=True, eq=False)
class WeightMap:
    """Attention weights between the pieces of two texts."""

    role: str
    """cross, encoder or decoder; "alignment" for the weights that the engine reports while it generates."""
    layer: int
    weights: NDArray[np.float32]
    """[head, query, key]"""
    has_root: bool = False
    """Whether the first key is a root that stands before the pieces."""
    tree: NDArray[np.int64] | None = None
    """[head, query] key of a piece's head in the tree with the largest sum of weights; None = none is shown."""

    def to_dict(self) -> dict[str, Any]:
        """Write the weights for JSON.

        Returns:
            Shape, and the numbers as base64 of little-endian float32.
        """
        tree = None if self.tree is None else self.tree.tolist()
        return {"role": self.role, "layer": self.layer, "hasRoot": self.has_root, "tree": tree, **packed(self.weights)}


@final
@dataclass(frozen=True, eq=False)
class NextToken:
    """One of the most probable next tokens at a step of an output."""

    token: int
    piece: str
    log_prob: float
    output: "Output | None" = None
    """Output that goes on from this token; None where it was not computed."""

    def to_dict(self) -> dict[str, Any]:
        """List the fields for JSON.

        Returns:
            Values that JSON can hold.
        """
        known = {"token": self.token, "piece": self.piece, "logProb": rounded(self.log_prob)}
        return known if self.output is None else known | {"output": self.output.to_dict()}


@final
@dataclass(frozen=True, eq=False)
class Output:
    """One output for a source.

    Example:
        >>> from heedful.predictors.sentence_view import SentenceViewer, ViewRequest  # doctest: +SKIP
        >>> viewer = SentenceViewer(heedful.load("de-en.model"))  # doctest: +SKIP
        >>> output = viewer.view(ViewRequest("Guten Tag", has_layers=False)).outputs[0]  # doctest: +SKIP
        >>> output.text, len(output.token_log_probs)  # doctest: +SKIP
        ('Good day', 3)
    """

    text: str
    """The output."""
    ids: tuple[int, ...]
    """Tokens, with EOS where the model ended the output."""
    words: Words
    """Words of the output, made of its pieces."""
    token_log_probs: tuple[float, ...]
    """Log probability of each token, in nats."""
    log_prob: float
    """Sum of `token_log_probs`."""
    score: float
    """Score by which the search ranks outputs."""
    weights: NDArray[np.float32] | None = None
    """[target piece, source piece] attention while generating."""
    choices: tuple[tuple[NextToken, ...], ...] = ()
    """Most probable tokens at each step; empty where they were not computed."""
    num_forced: int = 0
    """Number of tokens at the beginning that were prescribed."""

    def to_dict(self) -> dict[str, Any]:
        """List the fields for JSON.

        Returns:
            Values that JSON can hold.
        """
        return {
            "text": self.text,
            "ids": list(self.ids),
            **self.words.to_dict(),
            "tokenLogProbs": [rounded(one) for one in self.token_log_probs],
            "logProb": rounded(self.log_prob),
            "score": rounded(self.score),
            "weights": None if self.weights is None else packed(self.weights[None]),
            "choices": [[choice.to_dict() for choice in step] for step in self.choices],
            "numForced": self.num_forced,
        }


@final
@dataclass(frozen=True, eq=False)
class TracedSearch:
    """Search for one source, as the page draws it."""

    beam: int
    trace: SearchTrace
    pieces: Mapping[int, str]
    """Label of every token in the trace."""
    texts: tuple[str, ...]
    """Text of every hypothesis in the trace."""
    departure: int | None = None
    """Step at which the reference leaves the beam; -1 if it was found, None without a reference."""

    def to_dict(self) -> dict[str, Any]:
        """List the hypotheses for JSON.

        Returns:
            Values that JSON can hold; the attention of a node is stored with the node only.
        """
        nodes = [
            {
                "parent": node.parent,
                "step": node.step,
                "piece": self.pieces[node.token],
                "token": node.token,
                "tokenLogProb": rounded(node.token_log_prob),
                "logProb": rounded(node.log_prob),
                "rank": node.rank,
                "fate": node.fate,
                "text": text,
            }
            for node, text in zip(self.trace.nodes, self.texts, strict=True)
        ]
        attention = [node.weights for node in self.trace.nodes if node.weights is not None]
        has_all = bool(attention) and len(attention) == len(nodes)
        return {
            "beam": self.beam,
            "nodes": nodes,
            "attention": packed(np.stack(attention)[None]) if has_all else None,
            "departure": self.departure,
        }


@final
@dataclass(frozen=True, eq=False)
class SentenceView:
    """Everything that the page shows of one sentence.

    Example:
        >>> from heedful.predictors.sentence_view import SentenceViewer, ViewRequest  # doctest: +SKIP
        >>> viewer = SentenceViewer(heedful.load("de-en.model"))  # doctest: +SKIP
        >>> view = viewer.view(ViewRequest("Guten Tag", has_layers=False))  # doctest: +SKIP
        >>> view.kind, view.source.words[-1]  # doctest: +SKIP
        ('transformer', '⏎')
    """

    model: str
    """Name of the model."""
    kind: str
    """Kind of the model, such as transformer."""
    languages: tuple[str, str]
    """Language codes of source and target; empty where they are unknown."""
    engine: str
    """Engine that computed the outputs."""
    text: str
    """The source."""
    source_ids: tuple[int, ...]
    """Tokens of the source, EOS included."""
    source: Words
    """Words of the source, made of its pieces."""
    was_cut: bool
    """True if the source was longer than the model takes, and was cut."""
    outputs: tuple[Output, ...]
    """Best first."""
    maps: tuple[WeightMap, ...] = ()
    """Weights of each layer, or those that the engine reports."""
    measure: MeasureName = "attention"
    """Measure that the maps show."""
    measures: tuple[str, ...] = ()
    """Measures that are defined for the model; empty where PyTorch is missing."""
    other_maps: Mapping[str, tuple[WeightMap, ...]] = field(default_factory=dict[str, tuple[WeightMap, ...]])
    """Maps by the other measures, for a page without a server."""
    searches: tuple[TracedSearch, ...] = ()
    """Recorded searches, greedy and with the beam."""
    reference: str = ""
    """Known output of the source; empty where none is known."""
    length_penalty: str = "power"
    """Length penalty of the search."""
    alpha: float = 1.0
    """Exponent of the length penalty."""
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    """Parts that this engine cannot give, each with the command that makes it: layers, heads, attention, search,
    measure."""

    def to_dict(self) -> dict[str, Any]:
        """List the fields for JSON.

        Returns:
            Values that JSON can hold.
        """
        return {
            "format": VIEW_FORMAT,
            "model": self.model,
            "kind": self.kind,
            "languages": list(self.languages),
            "engine": self.engine,
            "source": {"text": self.text, "ids": list(self.source_ids), **self.source.to_dict()},
            "wasCut": self.was_cut,
            "outputs": [output.to_dict() for output in self.outputs],
            "maps": [one.to_dict() for one in self.maps],
            "measure": self.measure,
            "measures": list(self.measures),
            "otherMaps": {name: [one.to_dict() for one in maps] for name, maps in self.other_maps.items()},
            "searches": [one.to_dict() for one in self.searches],
            "reference": self.reference,
            "lengthPenalty": self.length_penalty,
            "alpha": self.alpha,
            "missing": dict(self.missing),
        }


def packed(weights: NDArray[np.float32]) -> dict[str, Any]:
    """Write an array as text, a third of the size of its digits.

    Args:
        weights: any shape.

    Returns:
        "shape" and "data", base64 of little-endian float32.
    """
    data = base64.b64encode(np.ascontiguousarray(weights, dtype="<f4").tobytes()).decode("ascii")
    return {"shape": list(weights.shape), "data": data}


def rounded(value: float) -> float | None:
    """Round a number for JSON, which has no infinity.

    Args:
        value: any number.

    Returns:
        The number with five decimals; None if it is not finite.
    """
    return round(value, 5) if math.isfinite(value) else None
