import pytest

from heedful.config.base import read_toml, to_toml, validate
from heedful.errors import ConfigError
from heedful.search.config import SearchConfig, with_outputs


def test_defaults_are_valid_and_survive_toml(tmp_path) -> None:  # type: ignore[no-untyped-def]
    assert (SearchConfig().beam, SearchConfig().nbest, SearchConfig().alpha) == (5, 1, 1.0)
    chosen = SearchConfig(beam=12, nbest=3, length_penalty="gnmt", alpha=0.2, beta=0.2, forbid_unknown=True)
    (tmp_path / "search.toml").write_bytes(to_toml(chosen).encode())
    assert validate(SearchConfig, read_toml(tmp_path / "search.toml")) == chosen


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"beam": 0}, "search.beam: .*1 or more, got 0"),
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
        ({"method": "greedy"}, "search.method: .*'beam' or 'sampling'"),
        ({"method": "sampling"}, "search: method sampling carries no beam, got beam 5; set beam = 1"),
        ({"method": "sampling", "beam": 1, "num_groups": 2}, "num_groups and diversity are for method beam"),
        ({"method": "sampling", "beam": 1, "diversity": 0.5}, "num_groups and diversity are for method beam"),
        ({"method": "sampling", "beam": 1, "stopping": "certain"}, "stopping certain is for method beam"),
        (
            {"method": "sampling", "beam": 1, "temperature": 0, "nbest": 3},
            "draws the same output 3 times; set nbest = 1",
        ),
        (
            {"temperature": 0.5},
            "search: temperature 0.5 is for method sampling; leave it out, or set method = sampling",
        ),
        ({"top_k": 5}, "top_k 5 is for method sampling"),
        ({"top_p": 0.5}, "top_p 0.5 is for method sampling"),
        ({"min_p": 0.5}, "min_p 0.5 is for method sampling"),
        ({"temperature": -1}, "search.temperature"),
        ({"temperature": float("nan")}, "search.temperature"),
        ({"top_k": -1}, "search.top_k"),
        ({"top_p": 0.0}, "search.top_p: .*more than 0"),
        ({"top_p": 1.1}, "search.top_p"),
        ({"min_p": -0.1}, "search.min_p"),
        ({"min_p": 1.1}, "search.min_p"),
        ({"seed": -1}, "search.seed"),
        ({"seed": 2**63}, "search.seed"),
        ({"num_groups": 0}, "search.num_groups"),
        ({"num_groups": 2, "diversity": 1}, "beam 5 cannot be split into 2 groups of one size"),
        ({"num_groups": 6, "diversity": 1}, "beam 5 cannot be split into 6 groups"),
        ({"num_groups": 5}, "num_groups 5 with diversity 0 finds everything 5 times"),
        ({"diversity": 0.5}, "diversity 0.5 needs num_groups of 2 or more"),
        ({"diversity": -0.5}, "search.diversity"),
        ({"length_reward": -0.1}, "search.length_reward"),
        ({"repetition_penalty": 0.9}, "search.repetition_penalty: .*1.0 or more"),
        ({"no_repeat_ngram_size": -1}, "search.no_repeat_ngram_size"),
        ({"stopping": "early"}, "search.stopping: .*'likely', 'full' or 'certain'"),
    ],
)
def test_wrong_values_are_refused_by_name(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate(SearchConfig, given, "search")


def test_whole_numbers_do_for_real_ones() -> None:
    assert validate(SearchConfig, {"alpha": 0, "max_length_ratio": 2}) == SearchConfig(alpha=0.0, max_length_ratio=2.0)


def test_what_goes_together_is_accepted() -> None:
    chosen = {"method": "sampling", "beam": 1, "nbest": 9, "temperature": 0.7, "top_k": 9, "top_p": 0.5, "min_p": 0.1}
    assert validate(SearchConfig, chosen).nbest == 9
    assert validate(SearchConfig, {"method": "sampling", "beam": 1, "temperature": 0}).temperature == 0
    limits = {
        "repetition_penalty": 2,
        "no_repeat_ngram_size": 3,
        "length_reward": 0.5,
        "beta": 0.1,
        "stopping": "certain",
    }
    assert validate(SearchConfig, {"beam": 6, "num_groups": 3, "diversity": 0.5, **limits}).row_size == 2


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, (1, 5, 5)),
        ({"beam": 6, "num_groups": 3, "diversity": 1.0}, (3, 2, 6)),
        ({"method": "sampling", "beam": 1, "nbest": 4}, (4, 1, 4)),
    ],
)
def test_rows_and_their_hypotheses(settings: dict[str, object], expected: tuple[int, int, int]) -> None:
    chosen = validate(SearchConfig, settings)
    assert (chosen.num_rows, chosen.row_size, chosen.width) == expected


def test_asking_for_outputs_makes_room_for_them() -> None:
    assert with_outputs(SearchConfig()) == SearchConfig()
    assert (with_outputs(SearchConfig(), nbest=7).beam, with_outputs(SearchConfig(), beam=2).beam) == (7, 2)
    assert with_outputs(SearchConfig(nbest=3)).nbest == 1
    groups = SearchConfig(beam=4, num_groups=2, diversity=0.5, alpha=0.3)
    assert with_outputs(groups, nbest=5).beam == 6
    assert with_outputs(groups, nbest=5).alpha == 0.3
    sampling = SearchConfig(method="sampling", beam=1, top_p=0.9)
    assert (with_outputs(sampling, nbest=5).beam, with_outputs(sampling, nbest=5).nbest) == (1, 5)
    with pytest.raises(ConfigError, match="method sampling carries no beam"):
        with_outputs(sampling, beam=4)
    with pytest.raises(ConfigError, match="cannot be split into 2 groups"):
        with_outputs(groups, beam=5)


def test_a_beam_has_a_limit_that_is_told() -> None:
    with pytest.raises(ConfigError, match="nbest 5000: a beam search gives at most 1,000 outputs; sampling gives more"):
        with_outputs(SearchConfig(), nbest=5000)
    with pytest.raises(ConfigError, match="at most 999 outputs"):
        with_outputs(SearchConfig(beam=3, num_groups=3, diversity=0.5), nbest=1000)
