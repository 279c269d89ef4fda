"""A small version of the proof by the server's description, and a server that it must reject."""

import asyncio

import pytest

from tests.prove.prove_serve_schema import prove_schema, with_languages
from tests.thorough import thorough


@thorough
def test_no_request_makes_the_server_fail():
    assert asyncio.run(prove_schema(15))


@thorough
def test_a_server_that_fails_is_seen(capsys: pytest.CaptureFixture[str]):
    assert not asyncio.run(prove_schema(5, poison=""))  # every text holds the empty one
    assert "Server error" in capsys.readouterr().out


def test_languages_are_those_of_the_server():
    fields = {"source": {"type": "string"}, "q": {"type": "string"}}
    assert with_languages([{"properties": fields}], ["de"]) == [
        {"properties": {"source": {"type": "string", "enum": ["de"]}, "q": {"type": "string"}}}
    ]
