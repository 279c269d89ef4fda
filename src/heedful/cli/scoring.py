"""Model loading and search options, shared by the commands that decode or score."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.messages import Messages
from heedful.cli.options import named_device
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.engines.engine import Backend
    from heedful.predictors.table import PredictorT
    from heedful.predictors.translator import Translator
    from heedful.search.config import SearchConfig
    from heedful.search.constraints import Constraints


def load_to_run(
    path: Path,
    engine: str,
    device: str,
    ensemble: Sequence[Path] = (),
    *,
    kind: "type[PredictorT]",
    last_column: str = "",
) -> "PredictorT":
    """Open a model for inference; PyTorch is imported only if it runs the model.

    Args:
        device: value of --device.
        ensemble: folders of models that decode together with it.
        last_column: value of --as.

    Raises:
        UsageError: the model, engine or device does not exist, or they cannot be combined, or it has no such column.
    """
    from heedful.predictors.table import load

    if device not in ("auto", "cpu") and engine not in ("auto", "torch"):
        raise UsageError(f"--engine {engine} computes on the CPU; leave out --device {device}")
    predictor = load(path, named_device(device), engine, ensemble, kind=kind)
    if last_column:
        from heedful.cli.source_columns import set_last_column

        set_last_column(predictor, last_column)
    return predictor


def announce_engine(
    translator: "Translator",
    search: "SearchConfig",
    attention: bool,
    messages: Messages,
    constraints: "Constraints | None" = None,
    is_exact: bool = False,
) -> "SearchConfig":
    """Load the engine, and print its name if there are several.

    Args:
        attention: whether attention weights are needed.
        constraints: prefix, required and forbidden phrases of the outputs.
        is_exact: whether outputs must not depend on the rest of the batch.

    Raises:
        UsageError: the search or the engine cannot satisfy the constraints, of which those of --terms would otherwise
            be refused at the first line with a term.
    """
    backend = translator.backends.searching(search, attention, constraints, is_exact)
    if constraints is not None:
        _refuse_constraints(backend, search, constraints)
    if translator.backends.exported:
        reasons = [
            f"{name}: {exported.fault}" for name, exported in translator.backends.exported.items() if exported.fault
        ]
        if backend.name.startswith("ctranslate2") and search.beam > 1:
            reasons.insert(0, "its own beam search, which stops sooner than heedful's")
        if search.shortlist and not backend.has_shortlist:
            reasons.insert(0, "the whole vocabulary, because it has no shortlist")
        elif search.shortlist and not (constraints is None or constraints.is_free):
            reasons.insert(0, "the whole vocabulary, because phrases may have any token")
        messages.say(f"engine {backend.name}" + "".join(f"; {reason}" for reason in reasons))
    return search


def _refuse_constraints(backend: "Backend", search: "SearchConfig", constraints: "Constraints") -> None:
    """Check that a search can satisfy its constraints.

    Raises:
        UsageError: it cannot.
    """
    from heedful.search.constraints import why_impossible

    if fault := why_impossible(constraints, search):
        raise UsageError(f"--terms, --require: {fault}")
    if reason := backend.supports_constraints(constraints):
        raise UsageError(
            f"--terms, --require, --ban, --prefix: {reason}, by {backend.name}; leave them out, or use another engine"
        )


def changed_search(
    translator: "Translator", beam: int | None, nbest: int = 1, changes: Mapping[str, Any] | None = None
) -> "SearchConfig":
    """Apply the user's options to the model's own search settings.

    Args:
        beam: beam size; None = the model's own.
        nbest: number of outputs; a smaller beam is enlarged to it.
        changes: other search settings by name; None = the model's own.
    """
    from heedful.config.base import validate
    from heedful.search.config import SearchConfig, with_outputs

    overrides = {name: value for name, value in (changes or {}).items() if value is not None}
    config = translator.search
    if overrides:
        carried = {"beam": beam} if beam else {}
        config = validate(SearchConfig, config.model_dump(mode="json") | carried | overrides, "search")
        beam = config.beam  # groups may have made it larger
    return with_outputs(config, beam or 0, nbest)
