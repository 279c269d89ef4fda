"""Settings that differ from the defaults stand first in a file, and are found without the classes of the settings."""

from pathlib import Path

from heedful.config.base import Config, differences, read_differences, read_toml, to_toml, validate


class Inner(Config):
    kind: str = "a"
    size: int = 3


class Outer(Config):
    kind: str = "outer"
    name: str
    inner: Inner = Inner(size=4)
    spare: Inner = Inner()
    other: tuple[int, ...] = (1,)

    @property
    def unused_sections(self) -> frozenset[str]:
        return frozenset({"spare"})


class Whole(Config):
    part: Outer


def test_a_default_of_the_section_around_is_a_default():
    assert differences(Outer(name="x")) == {"name": "x"}
    assert differences(Outer(name="x", inner=Inner())) == {"name": "x", "inner": {"size": 3}}
    assert differences(Outer(name="x", other=(2,), inner=Inner(kind="b"))) == {
        "name": "x",
        "other": [2],
        "inner": {"kind": "b", "size": 3},
    }


def test_what_differs_stands_first_and_reads_back(tmp_path: Path):
    whole, path = Whole(part=Outer(name="x", other=(2,))), tmp_path / "settings.toml"
    path.write_text(to_toml(whole), encoding="utf-8")
    assert path.read_text(encoding="utf-8").splitlines()[2:] == [
        "[part]",
        'kind = "outer"',
        'name = "x"',
        "other = [2]",
        "",
        "[part.inner]",
        'kind = "a"',
        "# as by default:",
        "size = 4",
        "",
        "[part.spare]",
        'kind = "a"',
        "# as by default:",
        "size = 3",
    ]
    assert validate(Whole, read_toml(path)) == whole
    assert read_differences(path)["part"]["name"] == "x"
    assert "size" not in read_differences(path)["part"]["inner"]
    path.write_text('[part]\nname = "x"\n', encoding="utf-8")
    assert read_differences(path) == {}  # not set apart


def test_a_section_without_effect_is_not_written_unless_it_was_set():
    assert "[spare]" not in to_toml(Outer(name="x"))
    assert "[spare]" in to_toml(Outer(name="x", spare=Inner(size=9)))
