"""Backbones of timm as encoders of pictures, with a stand-in for timm and, where it is installed, the real one."""

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.errors import ConfigError, MissingExtra
from heedful.layers.backbone import BackboneEncoder
from heedful.models.image_transformer import ImageTransformerConfig
from heedful.models.inputs import PixelInputs
from heedful.models.show_attend_tell import ShowAttendTellConfig
from heedful.predictors.captioner import Captioner
from heedful.predictors.table import load
from heedful.runs.finish import export_engines
from heedful.runs.train import check_buildable
from tests.requests import make_request
from tests.tasks.scenes import write_scenes
from tests.tasks.test_captioning import Run
from tests.thorough import thinned, thorough

REAL = ("timm:mobilenetv3_small_050", "timm:resnet18", "timm:convnext_atto", "timm:vit_tiny_patch16_224")


class ActiveNorm(nn.BatchNorm2d):
    """Normalisation with its activation, as in timm."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.drop = nn.Identity()
        self.act = nn.ReLU()

    def forward(self, input: Tensor) -> Tensor:
        return self.act(self.drop(super().forward(input)))


class Stages(nn.Module):
    """Three stages of a small network, each at half the resolution of the one before."""

    def __init__(self, channels: int, out_indices: Sequence[int], has_state: bool) -> None:
        super().__init__()
        widths = (channels, 8, 12, 16)[: out_indices[-1] + 2]
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(before, after, 3, 2, 1), ActiveNorm(after)) for before, after in pairwise(widths)
        )
        self.out_indices = out_indices
        chosen = [(widths[index + 1], 2 ** (index + 1)) for index in out_indices]
        self.feature_info = SimpleNamespace(
            channels=lambda: [each[0] for each in chosen], reduction=lambda: [each[1] for each in chosen]
        )
        if has_state:
            self.register_buffer("mean", torch.zeros(3))

    def forward(self, maps: Tensor) -> list[Tensor]:
        all_maps: list[Tensor] = []
        for stage in self.stages:
            maps = stage(maps)
            all_maps.append(maps)
        return [all_maps[index] for index in self.out_indices]


def create_model(
    name: str, pretrained: bool, features_only: bool, in_chans: int, out_indices: Sequence[int] = (0, 1, 2)
) -> nn.Module:
    assert not pretrained  # nothing is downloaded
    assert features_only
    if name not in ("small", "with_state"):
        raise RuntimeError(f"Unknown model ({name})")
    stages = Stages(in_chans, out_indices, name == "with_state")
    stages.head = nn.Linear(3, 3)  # no part of the features
    return stages


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> str:
    module: Any = ModuleType("timm")
    module.create_model = create_model
    monkeypatch.setitem(sys.modules, "timm", module)
    return "timm:small"


def pictures(number: int, height: int = 16, width: int = 24) -> Tensor:
    return torch.randint(0, 256, (number, 3, height, width), dtype=torch.uint8)


def check_encoder(name: str, region_size: int) -> None:
    """Regions row by row, features that do not depend on the batch, and a gradient for all that is stored."""
    side = 4 * region_size
    encoder = BackboneEncoder(name, 3, region_size, 24, 16)
    pixels = pictures(5, side, 6 * region_size)
    assert encoder.train()(pixels).shape == (5, 24, 16)
    encoder.double()
    whole = encoder(pixels)
    torch.testing.assert_close(encoder(pixels[1:2]), whole[1:2])
    torch.testing.assert_close(encoder.eval()(pixels), whole)
    (maps,) = encoder.network(pixels.double() / 127.5 - 1.0)
    at = encoder.leave(maps[:, :, 1, 2]) + encoder.positions.codes(8, 1)[0]
    torch.testing.assert_close(whole[:, 8], at)
    encoder.train()(pixels).square().sum().backward()
    assert [key for key, each in encoder.named_parameters() if each.grad is None] == []
    assert encoder.state_dict().keys() == dict(encoder.named_parameters()).keys()


@pytest.mark.parametrize("region_size", [2, 4, 8])
def test_a_backbone_encodes_each_picture_by_itself(small: str, region_size: int):
    check_encoder(small, region_size)


@pytest.mark.parametrize("name", thinned(REAL, 4))
def test_backbones_of_timm(name: str):
    pytest.importorskip("timm", reason="timm is not installed: the extra backbones")
    check_encoder(name, 16 if "vit" in name else 8)


def test_a_network_that_sees_the_batch_would_be_noticed(small: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heedful.layers.backbone._normalize_groups", lambda network: None)
    with pytest.raises(ConfigError, match="state beside its parameters"):
        BackboneEncoder(small, 3, 4, 24, 16)


@pytest.mark.parametrize(
    ("name", "region_size", "complaint"),
    [
        ("timm:other", 4, r"timm builds no stages of other \(Unknown model \(other\)\)"),
        ("timm:small", 16, "regions of 2, 4, 8 pixels, not of 16; set images.region_size"),
        ("timm:with_state", 4, r"state beside its parameters \(mean\)"),
    ],
)
def test_what_does_not_fit_is_refused(small: str, name: str, region_size: int, complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        BackboneEncoder(name, 3, region_size, 24, 16)


@pytest.mark.parametrize("kind", [ShowAttendTellConfig, ImageTransformerConfig])
def test_every_model_of_images_takes_one(small: str, kind: type[ShowAttendTellConfig] | type[ImageTransformerConfig]):
    model = kind(backbone=small).build(3, 8, 8, 6, 9).eval()
    inner = model.encoder.inner if hasattr(model, "encoder") else model.image_encoder.inner  # type: ignore[union-attr]
    assert isinstance(inner, BackboneEncoder)
    targets = torch.randint(4, 9, (2, 5))
    assert model.logits(model(PixelInputs(pictures(2)), targets).features).shape == (2, 5, 9)
    with pytest.raises(ConfigError, match="reads pictures, but the data are features"):
        kind(backbone=small).build(5, 0, 0, 0, 9)


@pytest.mark.parametrize("name", ["resnet18", "timm:", "timm:a b", "timm:../x", "hub:x"])
def test_other_names_are_no_settings(name: str):
    with pytest.raises(ValueError, match="backbone"):
        ShowAttendTellConfig(backbone=name)


def test_a_name_without_its_library_is_told_how_to_write_it():
    with pytest.raises(ValueError, match="for the network resnet18 of timm, write timm:resnet18"):
        ShowAttendTellConfig(backbone="resnet18")


def test_without_timm_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    recipe = make_request((tmp_path,), task="captioning", settings=("model.backbone=timm:resnet18",))
    with pytest.raises(MissingExtra, match="backbones"):
        check_buildable(recipe)


@thorough
def test_a_model_with_a_backbone_trains_and_its_engine_says_the_same(small: str, tmp_path: Path):
    run = Run(
        write_scenes(tmp_path / "scenes.tsv", 40),
        tmp_path / "m",
        f"model.backbone={small}",
        "training.max_steps=10",
        "training.export=true",
    )
    run.train()
    export_engines(run.started[0], lambda line: None)
    images = sorted((tmp_path / "scenes").iterdir())[:5]
    graph, model = (load(tmp_path / "m", engine=engine, kind=Captioner) for engine in ("onnx", "torch"))
    results = (each.caption(images, beam=2, attention=True) for each in (graph, model))
    for one, other in zip(*results, strict=True):
        assert one.text == other.text
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
        assert one.attention is not None
        assert one.attention.shape == (len(one.pieces), 4)
