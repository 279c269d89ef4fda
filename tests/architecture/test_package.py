"""The reader of the package is itself trusted by all rules here, so it is tested too."""

import ast

from tests.architecture.package import Module, classes, definitions, dotted, read_package, unexcused


def test_every_definition_is_found_with_its_owner():
    text = "class A:\n    def f(self):\n        def g(): ...\nif True:\n    def h(): ...\n"
    module = Module("m", text)
    found = {definition.name: definition.owner for definition in definitions(module)}
    assert list(found) == ["m.A", "m.A.f", "m.A.f.g", "m.h"]
    assert found["m.h"] is module.tree
    assert isinstance(found["m.A.f"], ast.ClassDef)


def test_bases_are_followed_through_imports_and_scopes():
    text = (
        "from heedful.config.base import Config as Base\nimport torch.nn as nn\nclass Config(Base): ...\n"
        "class A(nn.Module):\n    class Config(Config): ...\ndef f():\n    class B(Config, Generic[T]): ...\n"
    )
    found = {name: entry.bases for name, entry in classes([Module("m.n", text)]).items()}
    assert found["m.n.Config"] == ("heedful.config.base.Config",)
    assert found["m.n.A"] == ("torch.nn.Module",)
    assert found["m.n.f.B"] == ("m.n.Config", "Generic")


def test_names_are_seen_through_calls_and_subscripts():
    names = [dotted(ast.parse(text, mode="eval").body) for text in ("a.b.c", "a.b[int]", "a.b(1)", "(1).c")]
    assert names == ["a.b.c", "a.b", "a.b", ""]


def test_the_whole_package_is_read():
    names = {module.name for module in read_package()}
    assert {"heedful", "heedful.errors", "heedful.text"} <= names


def test_an_exception_that_excuses_nothing_is_reported():
    assert unexcused({"m.f": "m.f: too long"}, {"m.f": "a table"}) == []
    assert unexcused({"m.f": "m.f: too long"}, {}) == ["m.f: too long"]
    assert "remove it" in unexcused({}, {"m.g": "was long once"})[0]
