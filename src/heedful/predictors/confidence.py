"""Confidence: the calibrated probability that a translation is right, stored in the model's folder."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Annotated, Final, final

import numpy as np
from pydantic import Field

from heedful.engines.engine import Backend
from heedful.engines.folder import ModelFolder, commit, open_folder
from heedful.engines.scored_pairs import ScoredPair, TextPair
from heedful.errors import FileRefused, ResourceError, UsageError
from heedful.evaluation.calibration import Calibrator
from heedful.evaluation.confidence import Criterion
from heedful.files.formats import CONFIDENCE_FORMAT
from heedful.files.records import RecordSchema, read_facts, write_facts
from heedful.predictors.translation import Translation

ROLE: Final = "confidence"
"""Entry of `heedful.json` that names the file."""
OF_ATTENTION: Final = ("entropy", "uncovered")
FEATURES: Final = (
    "log_prob",
    "log_odds",
    "probability",
    "per_token",
    "least",
    "spread",
    "log_length",
    "log_source_length",
    "log_ratio",
    *OF_ATTENTION,
)
"""Numbers about an output: its log probability, log odds and probability; mean, minimum and standard deviation of the
log probabilities of its tokens; logarithms of the numbers of tokens and of their ratio; the mean entropy of attention
over that of equal weights, and the share of source tokens that get less than a tenth of a step's attention in all."""
_LARGEST_ODDS: Final = 20.0
_LEAST_COVERAGE: Final = 0.1
_ADVICE: Final = "fit it again: heedful calibrate MODEL DATA"

Number = Annotated[float, Field(allow_inf_nan=False)]


@final
class _ConfidenceSchema(RecordSchema):
    """Schema of the entries of the file."""

    features: list[str]
    mean: list[Number]
    scale: list[Number]
    weights: list[Number]
    bias: Number
    criterion: Criterion
    num_items: int = Field(ge=1)


@final
@dataclass(frozen=True)
class Confidence:
    """Calibrated probability that an output of one model is right."""

    features: tuple[str, ...]
    """Names among `FEATURES`; without those of attention where the model has none."""
    calibrator: Calibrator
    criterion: Criterion
    """When an output is right: where it equals a reference, or has a chrF of at least 60 against one."""
    num_items: int
    """Number of sources that it was fitted on."""

    @property
    def needs_attention(self) -> bool:
        """Whether a feature is computed from attention weights."""
        return any(name in self.features for name in OF_ATTENTION)

    def probabilities(self, scored: Iterable[ScoredPair]) -> list[float]:
        """Compute the confidence of outputs.

        Args:
            scored: source and output of each, by forced decoding, with attention if `needs_attention`.

        Returns:
            Probabilities in (0, 1).
        """
        rows = [features_of(one, self.features) for one in scored]
        return self.calibrator.probabilities(np.array(rows)).tolist() if rows else []


def features_of(scored: ScoredPair, names: Sequence[str] = FEATURES) -> list[float]:
    """Compute the features of an output.

    Args:
        scored: source and output, with attention if a name asks for it.
        names: names among `FEATURES`.

    Returns:
        A finite number for each name.
    """
    tokens = np.maximum(np.array(scored.token_log_probs), -100.0)
    total = float(tokens.sum())
    length, source_length = len(tokens), len(scored.source_pieces)
    # log(p / (1 - p)); the difference of a p near 1 from 1 is that of the exponential.
    odds = total - math.log(max(-math.expm1(total), 1e-9)) if total < 0 else _LARGEST_ODDS
    values = {
        "log_prob": total,
        "log_odds": max(-_LARGEST_ODDS, min(_LARGEST_ODDS, odds)),
        "probability": math.exp(total),
        "per_token": total / length,
        "least": float(tokens.min()),
        "spread": float(tokens.std()),
        "log_length": math.log(length),
        "log_source_length": math.log(source_length),
        "log_ratio": math.log(length / source_length),
    }
    if scored.attention is not None:
        weights = np.maximum(scored.attention.astype(np.float64), 0.0)
        entropy = -(weights * np.log(np.maximum(weights, 1e-12))).sum(axis=1).mean()
        values["entropy"] = float(entropy / math.log(max(2, source_length)))
        values["uncovered"] = float((weights.sum(axis=0) < _LEAST_COVERAGE).mean())
    return [values[name] for name in names]


def read_confidence(folder: ModelFolder) -> Confidence:
    """Read the confidence of a model.

    Raises:
        UsageError: the model has none.
        FileRefused: its file is damaged.
        NewerFormat: a newer heedful wrote it.
    """
    if ROLE not in folder.facts:
        raise UsageError(
            f"{folder.path}: not calibrated, so it has no confidence; run: heedful calibrate {folder.path} DATA"
        )
    if not folder.file(ROLE).is_file():
        folder = open_folder(folder.path)  # the model has been calibrated again
    path = folder.file(ROLE)
    facts = read_facts(path, CONFIDENCE_FORMAT, _ADVICE)
    if error := _ConfidenceSchema.error(facts):
        raise FileRefused(f"{path}: not a confidence: {error}; {_ADVICE}")
    kinds = _ConfidenceSchema.model_validate(facts)
    columns = (kinds.mean, kinds.scale, kinds.weights)
    if {len(column) for column in columns} != {len(kinds.features)} or 0.0 in kinds.scale:
        raise FileRefused(f"{path}: not a confidence: its numbers do not fit its features; {_ADVICE}")
    if unknown := [name for name in kinds.features if name not in FEATURES]:
        raise FileRefused(f"{path}: not a confidence: no feature is called {unknown[0]!r}; {_ADVICE}")
    calibrator = Calibrator(tuple(kinds.mean), tuple(kinds.scale), tuple(kinds.weights), kinds.bias)
    return Confidence(tuple(kinds.features), calibrator, kinds.criterion, kinds.num_items)


def write_confidence(folder: ModelFolder, confidence: Confidence) -> None:
    """Store a confidence in a model's folder, in the place of an earlier one.

    The file has a name of its own, and the manifest is replaced after it is complete, so that the model is whole at
    every moment.

    Raises:
        ResourceError: the folder cannot be written.
        NewerFormat: a newer heedful has written the folder meanwhile.
    """
    facts = {
        "features": confidence.features,
        **asdict(confidence.calibrator),
        "criterion": confidence.criterion,
        "num_items": confidence.num_items,
    }
    name = f"{ROLE}-{sha256(repr(facts).encode()).hexdigest()[:8]}.json"
    before = folder.facts.get(ROLE)
    try:
        write_facts(folder.path / name, CONFIDENCE_FORMAT, facts)
        names = [each for each in folder.facts["files"] if each != before]
        others = {key: value for key, value in folder.facts.items() if key not in ("format", "files")}
        commit(folder.path, {**others, ROLE: name}, [*names, *([] if name in names else [name])])
        if isinstance(before, str) and before != name:
            (folder.path / before).unlink(missing_ok=True)
    except OSError as error:
        raise ResourceError(f"{folder.path}: not calibrated: {error.strerror or error}") from None


def with_confidence(
    translations: Sequence[Translation],
    confidence: Confidence,
    score: Callable[[list[TextPair], bool], Iterable[ScoredPair]],
) -> Iterator[Translation]:
    """Add the confidence to translations.

    Args:
        translations: outputs of the model, and corrections, whose confidence is 1.
        score: forced decoding of pairs by the model, with attention or without it.

    Yields:
        Each translation; an empty one for an empty source has confidence 1, and one of which the model does not know
        half of the letters 0.

    Cost: one forced decoding of each output.
    """
    own = [index for index, one in enumerate(translations) if one.source.strip() and not _is_correction(one)]
    scored = score(as_pairs([translations[index] for index in own]), confidence.needs_attention)
    known = dict(zip(own, confidence.probabilities(scored), strict=True))
    for index, one in enumerate(translations):
        yield replace(one, confidence=0.0 if _is_unreadable(one) else known.get(index, 1.0))


def confidence_adder(
    folder: ModelFolder,
    scoring: Callable[[bool], Backend],
    score: Callable[[list[TextPair], bool], Iterable[ScoredPair]],
) -> Callable[[list[Translation]], Iterator[Translation]]:
    """Make the function that adds the confidence to translations of a model.

    Args:
        scoring: backend that scores given outputs, with attention or without it.
        score: as for `with_confidence`.

    Raises:
        UsageError: the model is not calibrated, or the engine gives no attention, which its confidence needs.
    """
    confidence = read_confidence(folder)
    backend = scoring(confidence.needs_attention)
    if reason := backend.supports_scoring(confidence.needs_attention):
        raise UsageError(
            f"{backend.name}: {reason}, which this model's confidence needs; use --engine onnx or --engine torch"
        )
    return partial(with_confidence, confidence=confidence, score=score)


def as_pairs(translations: Sequence[Translation]) -> list[TextPair]:
    """Pair sources with outputs as the model read and wrote them, before unknown words were replaced.

    Returns:
        Source and output of each.
    """
    return [one.decoded or (one.source, one.unreplaced or one.text) for one in translations]


def _is_unreadable(one: Translation) -> bool:
    """True where the model does not know half of the letters of the source or more."""
    letters = [letter for letter in one.source if not letter.isspace()]
    return bool(one.unknown) and 2 * sum(letter in one.unknown for letter in letters) >= len(letters)


def _is_correction(one: Translation) -> bool:
    return one.memory is not None and one.memory.is_exact and one.text == one.memory.correction
