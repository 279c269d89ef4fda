"""DeepL's and DeepLX's interfaces."""

import pytest

from heedful.serving.limits import Limits
from tests.serving.reversing import Reverser, serve


def test_deepl_takes_json_and_forms():
    client = serve()
    expected = {"translations": [{"detected_source_language": "DE", "text": text} for text in ("cba", "ed")]}
    assert client.post("/v2/translate", json={"text": ["abc", "de"], "target_lang": "EN-US"}).json() == expected
    form = b"text=abc&text=de&source_lang=DE&target_lang=EN"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/v2/translate", content=form, headers=headers).json() == expected


def test_deeplx_shares_the_path_of_libretranslate():
    fields = {"text": "abc", "source_lang": "auto", "target_lang": "ZH"}
    answer = serve(Reverser(("en", "zh"))).post("/translate", json=fields).json()
    assert (answer["code"], answer["data"], answer["source_lang"], answer["target_lang"]) == (200, "cba", "EN", "ZH")
    assert answer["alternatives"] == ["cba+", "cba++", "cba+++"]


@pytest.mark.parametrize("number", [0, 1])
def test_deeplx_gives_no_more_alternatives_than_the_server_allows(number: int):
    fields = {"text": "abc", "source_lang": "DE", "target_lang": "EN"}
    answer = serve(limits=Limits(alternatives=number)).post("/translate", json=fields)
    assert (answer.status_code, answer.json()["alternatives"]) == (200, ["cba+"][:number])


def test_languages_are_listed():
    client = serve(Reverser(("en", "zh")))
    assert client.get("/v2/languages").json() == [{"language": "EN", "name": "English"}]
    assert client.get("/v2/languages?type=target").json() == [{"language": "ZH", "name": "Chinese"}]


def test_a_wrong_request_is_refused():
    for fields in (
        {"target_lang": "EN"},
        {"text": [7], "target_lang": "EN"},
        {"text": ["a"]},
        {"text": ["a"], "target_lang": "XX"},
    ):
        assert serve().post("/v2/translate", json=fields).status_code == 400


def test_tags_are_treated_as_deepl_does():
    client = serve()
    fields = {"text": ["<d>ab <k>cd</k> ef</d>"], "target_lang": "EN", "tag_handling": "xml"}
    for more, expected in (
        ({}, "<d>fe <k>dc</k> ba</d>"),
        ({"ignore_tags": ["k"]}, "<d>fe <k>cd</k> ba</d>"),
        ({"splitting_tags": "k, x"}, "<d>ba <k>dc</k> fe</d>"),
    ):
        answer = client.post("/v2/translate", json=fields | more).json()
        assert answer["translations"][0]["text"] == expected
    for more in ({"tag_handling": "sgml"}, {"ignore_tags": 7}, {"splitting_tags": [7]}):
        assert client.post("/v2/translate", json=fields | more).status_code == 400
