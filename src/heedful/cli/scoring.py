"""Evaluation on a set, shared by `evaluate`, `train` and `demo`: translate and score."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.messages import Messages
from heedful.cli.options import choose_device
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.predictors.translator import Translator
    from heedful.search.config import SearchConfig
    from heedful.search.constraints import Constraints


def load_to_run(path: Path, engine: str, device: str, ensemble: Sequence[Path] = ()) -> "Translator":
    """Open a model for running, with PyTorch only where PyTorch runs it.

    Args:
        path: the model folder.
        engine: as the user named it.
        device: as the user named it.
        ensemble: folders of models that decode together with it.

    Returns:
        The translator.

    Raises:
        UsageError: there is no such model, engine or device, or they do not go together.
    """
    from heedful.predictors.table import load
    from heedful.predictors.translator import Translator

    if device not in ("auto", "cpu"):
        if engine not in ("auto", "torch"):
            raise UsageError(f"--engine {engine} computes on the CPU; leave out --device {device}")
        return load(path, choose_device(device), "torch", ensemble, kind=Translator)
    if engine == "torch":
        return load(path, choose_device(device), engine, ensemble, kind=Translator)
    # Which device PyTorch would take is asked only when PyTorch is needed: to ask, it must be loaded.
    return load(path, device, engine, ensemble, kind=Translator)


def tell_engine(
    translator: "Translator",
    search: "SearchConfig",
    attention: bool,
    messages: Messages,
    constraints: "Constraints | None" = None,
    is_exact: bool = False,
) -> "SearchConfig":
    """Load the engine, and print its name where there is a choice.

    Args:
        translator: the model.
        search: beam and the like.
        attention: whether attention is wanted.
        messages: where to say it.
        constraints: what outputs begin with, hold and do not hold.
        is_exact: whether no bit may depend on what is decoded beside.

    Returns:
        The search, as it was given.
    """
    backend = translator.backends.searching(search, attention, constraints, is_exact)
    if translator.backends.exported:
        reasons = [
            f"{name}: {exported.fault}" for name, exported in translator.backends.exported.items() if exported.fault
        ]
        if backend.name.startswith("ctranslate2") and search.beam > 1:
            reasons.insert(0, "its own beam search, which stops sooner than heedful's")
        messages.say(f"engine {backend.name}" + "".join(f"; {reason}" for reason in reasons))
    return search


def changed_search(
    translator: "Translator", beam: int | None, nbest: int = 1, changes: Mapping[str, Any] | None = None
) -> "SearchConfig":
    """Apply the user's options to the model's own search settings.

    Args:
        translator: the model.
        beam: hypotheses carried; None = the model's own.
        nbest: outputs wanted; a smaller beam grows to it.
        changes: other settings of the search by name; those that are None stay as the model has them.

    Returns:
        The settings.
    """
    from heedful.config import validate
    from heedful.search.config import SearchConfig, with_outputs

    overrides = {name: value for name, value in (changes or {}).items() if value is not None}
    config = translator.search
    if overrides:
        carried = {"beam": beam} if beam else {}
        config = validate(SearchConfig, config.model_dump(mode="json") | carried | overrides, "search")
    return with_outputs(config, beam or 0, nbest)
