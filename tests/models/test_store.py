"""A model in its folder: the same after a save and a load, refused where it does not fit, whole after any fault."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from heedful.engines.folder import MANIFEST, commit, open_folder
from heedful.errors import FileRefused, ResourceError
from heedful.models.inputs import TokenInputs
from heedful.models.store import load_model, save_model, store_weights
from heedful.tasks.experiment import Experiment, build_model
from heedful.version import __version__
from tests.prove.disk import Call, calls
from tests.requests import load_experiment
from tests.runs.test_settings import TINY
from tests.thorough import sampled


def make_folder(path: Path, kind: str = "transformer") -> tuple[Experiment, dict[str, torch.Tensor]]:
    """A folder with a model of 9 and 7 tokens; its experiment and weights."""
    path.mkdir(exist_ok=True)
    (path / "tokenizer.json").write_bytes(b"[]")
    made = load_experiment(settings=[*TINY[kind], "text.shared=false"])
    weights = {
        name: p.detach().clone() for name, p in build_model(made, (9, 7, made.text.is_shared)).named_parameters()
    }
    save_model(path, made, weights, FACTS)
    return made, weights


FACTS = {"languages": ["de", "en"], "source_tokenizer": "tokenizer.json", "target_tokenizer": "tokenizer.json"}


@pytest.mark.parametrize("kind", TINY)
def test_a_saved_model_is_the_same(kind: str, tmp_path: Path):
    made, weights = make_folder(tmp_path / "m", kind)
    folder = open_folder(tmp_path / "m")
    assert folder.facts["kind"] == kind
    assert folder.facts["languages"] == ["de", "en"]
    model = load_model(folder, (9, 7, False))
    assert not model.training
    loaded = dict(model.named_parameters())
    assert loaded.keys() == weights.keys()
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)
    original = build_model(made, (9, 7, made.text.is_shared)).eval()
    inputs = (TokenInputs(torch.tensor([[4, 5, 3]]), torch.tensor([3])), torch.tensor([[2, 4]]))
    assert torch.equal(model(*inputs).features, original(*inputs).features)


def test_the_header_of_the_weights_says_whose_they_are_in_the_same_bytes_each_time(tmp_path: Path):
    for name in ("one", "two"):
        torch.manual_seed(3)
        make_folder(tmp_path / name)
    one, two = (open_folder(tmp_path / name).file("weights") for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    with safe_open(one, "pt") as file:
        header = json.loads(file.metadata()["heedful"])
    assert header == {"version": __version__, "task": "translation", "kind": "transformer", "languages": ["de", "en"]}
    store_weights(tmp_path / "one", load_file(one))
    assert open_folder(tmp_path / "one").file("weights").read_bytes() == two.read_bytes()


def test_loading_draws_none_of_the_callers_random_numbers(tmp_path: Path):
    make_folder(tmp_path / "m")
    folder = open_folder(tmp_path / "m")
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    load_model(folder, (9, 7, False))
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("num_tokens", [(8, 7), (9, 8)])
def test_weights_of_other_vocabularies_are_refused(num_tokens: tuple[int, int], tmp_path: Path):
    make_folder(tmp_path / "m")
    with pytest.raises(FileRefused, match=r"does not fit .*embedding"):
        load_model(open_folder(tmp_path / "m"), (*num_tokens, False))


def drop(weights: dict[str, torch.Tensor]) -> None:
    del weights["encoder_norm.bias"]


def add(weights: dict[str, torch.Tensor]) -> None:
    weights["extra"] = torch.zeros(1)


def widen(weights: dict[str, torch.Tensor]) -> None:
    weights["encoder_norm.bias"] = weights["encoder_norm.bias"].double()


def reshape(weights: dict[str, torch.Tensor]) -> None:
    weights["encoder_norm.bias"] = weights["encoder_norm.bias"][None]


@pytest.mark.parametrize("fault", [drop, add, widen, reshape])
def test_weights_that_do_not_fit_are_refused_by_name(fault: Callable[[dict[str, torch.Tensor]], None], tmp_path: Path):
    path = tmp_path / "m"
    make_folder(path)
    manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    weights = load_file(path / manifest["weights"])
    fault(weights)
    save_file(weights, path / manifest["weights"])
    commit(path, {key: value for key, value in manifest.items() if key != "files"}, list(manifest["files"]))
    with pytest.raises(FileRefused, match=r"does not fit .*: (encoder_norm\.bias|extra)"):
        load_model(open_folder(path), (9, 7, False))


def test_a_model_of_another_task_is_refused(tmp_path: Path):
    make_folder(tmp_path / "m")
    with pytest.raises(FileRefused, match=r"config.toml: damaged: a transformer is no model for the task of .*copy"):
        load_model(open_folder(tmp_path / "m"), (9, 7))


def test_rubbish_for_weights_is_refused(tmp_path: Path):
    path = tmp_path / "m"
    make_folder(path)
    manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    (path / manifest["weights"]).write_bytes(b"rubbish")
    commit(path, {key: value for key, value in manifest.items() if key != "files"}, list(manifest["files"]))
    with pytest.raises(FileRefused, match="not readable"):
        load_model(open_folder(path), (9, 7, False))


def test_new_weights_take_the_place_of_old_ones(tmp_path: Path):
    path = tmp_path / "m"
    made, weights = make_folder(path)
    before = set(path.iterdir())
    save_model(path, made, {name: tensor + 1 for name, tensor in weights.items()}, FACTS)
    assert len(set(path.iterdir())) == len(before)
    loaded = dict(load_model(open_folder(path), (9, 7, False)).named_parameters())
    assert all(torch.equal(loaded[name], weights[name] + 1) for name in weights)


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


@sampled(2)
@pytest.mark.parametrize("settings", [[], ["training.max_steps=9"]], ids=["same", "raised"])
@pytest.mark.parametrize("kind", [OSError, Killed])
def test_a_fault_at_any_call_of_a_save_leaves_a_whole_model(
    kind: type[BaseException], settings: list[str], tmp_path: Path
):
    num_faults = 0
    for fatal in count():
        path = tmp_path / str(fatal)
        made, weights = make_folder(path)
        made = load_experiment(settings=[*TINY["transformer"], "text.shared=false", *settings])
        places = count()

        def fault(call: Call, fatal: int = fatal, places: Iterator[int] = places) -> None:
            place = next(places)
            if place == fatal or (place > fatal and kind is Killed):
                raise kind(28, "No space left on device")

        with calls(fault), suppress(ResourceError, Killed):
            save_model(path, made, {name: tensor + 1 for name, tensor in weights.items()}, FACTS)
        num_calls = next(places)
        loaded = dict(load_model(open_folder(path), (9, 7, False)).named_parameters())
        name = "encoder_norm.bias"
        is_new = torch.equal(loaded[name], weights[name] + 1)
        assert is_new or torch.equal(loaded[name], weights[name])
        if num_calls <= fatal:
            assert is_new
            break
        num_faults += 1
    assert num_faults >= 14
