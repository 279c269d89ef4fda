"""Model store: the trained weights and the configuration of a model in its folder, saved and loaded."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Tensor, nn

from heedful.config.base import Config, read_toml, to_toml, validate
from heedful.config.plugins import named_code
from heedful.engines.folder import CONFIG, MANIFEST, ModelFolder, commit, open_folder
from heedful.errors import FileRefused, ResourceError
from heedful.files.atomic_write import atomic_write, sync, write_through
from heedful.files.formats import KEY
from heedful.models.devices import check_device, has_cuda
from heedful.models.table import ModelConfig
from heedful.models.transformer import TransformerConfig
from heedful.version import __version__

DEFAULT_TASK: Final = "translation"
_KINDS: Final[Mapping[str, Any]] = {"task": "", "kind": "", "languages": []}
"""Facts about a model that the header of its weights repeats, for hubs and programs that have this file alone."""


class StoredSettings(Config):
    """Settings without which a stored model cannot be loaded; `heedful.tasks.experiment.Experiment` adds the others."""

    task: str = DEFAULT_TASK
    """Key of `heedful.tasks.table.TASKS`."""
    model: ModelConfig = TransformerConfig()


def save_model(folder: Path, settings: StoredSettings, weights: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Turn a folder with tokenizers into a model folder, or replace the weights in it.

    Args:
        folder: the model's folder.
        settings: written as config.toml, every value resolved.
        facts: what `heedful.json` should say: languages, tokenizers. A fact that names a file of the folder makes it
            one of the model's.

    Raises:
        ResourceError: the disk is full or refuses; the model that was there is untouched.
    """
    try:
        kinds = {"task": settings.task, "kind": settings.model.kind, "languages": facts.get("languages", [])}
        name = _write_weights(folder, weights, kinds)
        _write_config(folder, to_toml(settings))
        sync(folder)
        text_files = {fact for fact in facts.values() if isinstance(fact, str) and (folder / fact).is_file()}
        code = sorted(named_code(settings.model.model_dump()))
        about = {
            "heedful": __version__,
            "task": settings.task,
            "kind": settings.model.kind,
            **facts,
            **({"code": code} if code else {}),
            "weights": name,
        }
        commit(folder, about, [CONFIG, name, *sorted(text_files)])
    except (OSError, SafetensorError) as error:
        raise ResourceError(f"{folder}: model not saved: {error}") from None
    _delete_weights(folder, name)


def store_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Replace the weights of a model by others of the same names and shapes, such as those of a loop of one's own.

    Exported engines of the old weights are no longer used; `heedful export` makes them anew.

    Args:
        folder: the model's folder.
        weights: value of each parameter, by its name in the model.

    Raises:
        FileRefused: the model is damaged, or has parameters of other names or shapes.
        ResourceError: the disk is full or refuses; the model that was there is untouched.

    Example:
        >>> import heedful
        >>> model = heedful.load("pairs.model").model()  # doctest: +SKIP
        >>> store_weights(Path("pairs.model"), dict(model.named_parameters()))  # doctest: +SKIP
    """
    before = open_folder(folder)
    old = before.file("weights")
    with safe_open(old, "pt") as stored:
        wanted = {name: tuple(stored.get_slice(name).get_shape()) for name in stored.keys()}
    if wrong := wanted.items() ^ {name: tuple(tensor.shape) for name, tensor in weights.items()}.items():
        raise FileRefused(f"{folder}: the weights do not fit the model: {', '.join(sorted({n for n, _ in wrong})[:3])}")
    try:
        kinds = {key: before.facts.get(key, default) for key, default in _KINDS.items()}
        name = _write_weights(folder, weights, kinds)
        facts = {key: value for key, value in before.facts.items() if key not in (KEY, "files")}
        others = [each for each in before.facts["files"] if each != old.name]
        commit(folder, {**facts, "weights": name}, sorted({*others, name}))
    except (OSError, SafetensorError) as error:
        raise ResourceError(f"{folder}: weights not saved: {error}") from None
    _delete_weights(folder, name)


def _write_weights(folder: Path, weights: Mapping[str, Tensor], kinds: Mapping[str, Any]) -> str:
    """Write weights into a file that is named after them, and return its name."""
    temporary = folder / ".weights.safetensors"
    try:
        temporary.unlink(missing_ok=True)
        # One entry, because several would be written in another order each time.
        header = {"heedful": json.dumps({"version": __version__, **kinds}, sort_keys=True)}
        content = save({name: tensor.detach().contiguous().cpu() for name, tensor in weights.items()}, header)
        write_through(temporary, content)
        name = f"model-{sha256(content).hexdigest()[:8]}.safetensors"
        temporary.replace(folder / name)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return name


def _delete_weights(folder: Path, but: str) -> None:
    with suppress(OSError):  # what stays is in nobody's way
        for old in folder.glob("model-*.safetensors"):
            if old.name != but:
                old.unlink()


def store_settings(folder: Path, settings: StoredSettings) -> None:
    """Replace the settings of a model by others that suit the same weights, such as those of its search.

    Args:
        folder: the model's folder.
        settings: written as config.toml, every value resolved.

    Raises:
        FileRefused: the model is damaged.
        ResourceError: the disk is full or refuses.
    """
    before = open_folder(folder).facts
    try:
        _write_config(folder, to_toml(settings))
        facts = {key: value for key, value in before.items() if key not in (KEY, "files")}
        commit(folder, facts, [*before["files"]])
    except OSError as error:
        raise ResourceError(f"{folder}: settings not saved: {error}") from None


def _write_config(folder: Path, text: str) -> None:
    """Replace config.toml; when training is resumed, only settings that do not change the model differ."""
    path = folder / CONFIG
    if path.is_file() and path.read_bytes() == text.encode():
        return
    if (folder / MANIFEST).is_file():
        # Two files cannot change at one instant: until the next commit the model is whole with either config.
        with suppress(FileRefused):  # a damaged one has nothing to lose
            before = open_folder(folder).facts
            names = [name for name in before["files"] if name != CONFIG]
            commit(folder, {key: value for key, value in before.items() if key not in (KEY, "files")}, names)
    with atomic_write(path, is_internal=True) as stream:
        stream.write(text)


def takes_sizes(config: object, sizes: Sequence[Any]) -> bool:
    """Tell whether a model's configuration can build a model of some sizes.

    Args:
        sizes: sizes that the data of a task give.

    Returns:
        Whether its `build` takes as many sizes.
    """
    build = getattr(config, "build", None)
    if not callable(build):
        return False
    try:
        signature(build).bind(*sizes)
    except TypeError:
        return False
    return True


def read_weights(folder: ModelFolder, model: nn.Module) -> dict[str, Tensor]:
    """Read the weights of a folder.

    Args:
        model: a model that they should fit; its own weights are not read.

    Raises:
        FileRefused: the file is damaged, or its weights do not fit the model.
    """
    path = folder.file("weights")
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise FileRefused(f"{path}: not readable: {error}") from None
    wanted = {name: (parameter.shape, parameter.dtype) for name, parameter in model.named_parameters()}
    stored = {name: (tensor.shape, tensor.dtype) for name, tensor in weights.items()}
    if wanted != stored:
        wrong = sorted(name for name in wanted.keys() | stored.keys() if wanted.get(name) != stored.get(name))
        raise FileRefused(f"{path}: does not fit {folder.path / MANIFEST}: {', '.join(wrong[:3])}")
    return weights


def load_model(folder: ModelFolder, sizes: Sequence[Any], device: str = "cpu") -> nn.Module:
    """Load the PyTorch model of a folder.

    Args:
        sizes: those that tokenizers and labels give: the arguments of the model configuration's `build`.
        device: PyTorch device; "auto" = a CUDA device if there is one, else the CPU.

    Raises:
        FileRefused: the configuration is of another task's model, or the weights do not fit it.
        UsageError: there is no such kind of device.
        ResourceError: there is no such device.
    """
    check_device(device)
    tree = read_toml(folder.path / CONFIG)
    settings = validate(StoredSettings, {key: tree[key] for key in StoredSettings.model_fields if key in tree})
    if not takes_sizes(settings.model, sizes):
        raise FileRefused(
            f"{folder.path / CONFIG}: damaged: a {settings.model.kind} is no model for the task of "
            f"{folder.path / MANIFEST}; copy the folder again"
        )
    with torch.device("meta"), torch.random.fork_rng(devices=[]):
        shaped = settings.model.build(*sizes)
    weights = read_weights(folder, shaped)
    # The caller's random numbers are none of a model's that is only loaded.
    with torch.random.fork_rng(devices=[]):
        model = settings.model.build(*sizes)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])  # into aligned memory: what is mapped gives other last bits
    if device == "auto":
        device = "cuda" if has_cuda() else "cpu"
    return model.to(device).eval()
