import pytest

from heedful.config import read_toml, to_toml, validate
from heedful.errors import ConfigError
from heedful.search.config import SearchConfig


def test_defaults_are_valid_and_survive_toml(tmp_path) -> None:  # type: ignore[no-untyped-def]
    assert (SearchConfig().beam, SearchConfig().nbest, SearchConfig().alpha) == (5, 1, 1.0)
    chosen = SearchConfig(beam=12, nbest=3, length_penalty="gnmt", alpha=0.2, beta=0.2, forbid_unknown=True)
    (tmp_path / "search.toml").write_bytes(to_toml(chosen).encode())
    assert validate(SearchConfig, read_toml(tmp_path / "search.toml")) == chosen


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"beam": 0}, "search.beam: .*greater than or equal to 1, got 0"),
        ({"beam": -5}, "search.beam"),
        ({"beam": 2.5}, "search.beam"),
        ({"beam": "5"}, "search.beam"),
        ({"beam": True}, "search.beam"),
        ({"nbest": 0}, "search.nbest"),
        ({"nbest": 6}, "search: nbest 6 is more than beam 5"),
        ({"beam": 2, "nbest": 3}, "raise beam or lower nbest"),
        ({"alpha": -0.1}, "search.alpha"),
        ({"alpha": float("nan")}, "search.alpha"),
        ({"alpha": float("inf")}, "search.alpha"),
        ({"beta": -1.0}, "search.beta"),
        ({"length_penalty": "wu"}, "search.length_penalty: .*'power' or 'gnmt'"),
        ({"max_length_ratio": -1.0}, "search.max_length_ratio"),
        ({"max_length_ratio": float("inf")}, "search.max_length_ratio"),
        ({"max_length_offset": -1}, "search.max_length_offset"),
        ({"max_length_offset": 10**400}, "search.max_length_offset"),
        ({"min_length": -1}, "search.min_length"),
        ({"forbid_unknown": 1}, "search.forbid_unknown"),
        ({"beam_size": 5}, "unknown key"),
    ],
)
def test_wrong_values_are_refused_by_name(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate(SearchConfig, given, "search")


def test_whole_numbers_do_for_real_ones() -> None:
    assert validate(SearchConfig, {"alpha": 0, "max_length_ratio": 2}) == SearchConfig(alpha=0.0, max_length_ratio=2.0)
