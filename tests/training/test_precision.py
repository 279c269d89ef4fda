import pytest
import torch

from heedful.training.precision import autocast, resolve_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(("supported", "wanted"), [(True, "bfloat16"), (False, "float32")])
def test_auto_is_what_the_processor_multiplies_fastest(supported: bool, wanted: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: supported)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: supported or including_emulation)
    assert resolve_precision("auto", CPU) == wanted
    assert resolve_precision("auto", torch.device("cuda")) == wanted
    assert resolve_precision("auto", torch.device("meta")) == "float32"


def test_what_is_asked_for_stays():
    assert [resolve_precision(precision, CPU) for precision in ("float32", "bfloat16")] == ["float32", "bfloat16"]


def test_products_are_narrow_inside_and_only_inside():
    one = torch.ones(2, 2)
    with autocast("bfloat16", CPU):
        assert (one @ one).dtype == torch.bfloat16
    with autocast("float32", CPU):
        assert (one @ one).dtype == torch.float32
    assert (one @ one).dtype == torch.float32
