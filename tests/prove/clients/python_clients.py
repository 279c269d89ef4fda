"""Unmodified Python clients of LibreTranslate against a server that reverses texts; runs in an environment of theirs.

Prints one line per client: its name, and "right" or what went wrong.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import traceback
import urllib.request
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest.mock import MagicMock

KEY = "secret"


def libretranslatepy(url: str) -> None:
    """Forms, and a GET with a body."""
    client = import_module("libretranslatepy").LibreTranslateAPI(f"{url}/", KEY)
    assert client.translate("123", "de", "en") == "321"
    assert client.detect("123")[0]["language"] == "de"
    assert {each["code"] for each in client.languages()} == {"de", "en"}


def libretranslate_aio(url: str) -> None:
    """JSON with lists, alternatives, detection, settings and files, with and without asyncio."""
    module = import_module("libretranslate_aio")
    with tempfile.TemporaryDirectory() as folder, module.LibreTranslate(url, api_key=KEY) as client:
        assert client.health()
        assert client.translate("123", "de", "en", alternatives=1).alternatives == ["321+"]
        several = client.translate(["12", "34"], "auto", "en")
        assert several.translated_text == ["21", "43"]
        assert [each.language for each in several.detected_language] == ["de", "de"]
        assert client.translate("<b>12</b>", "de", "en", format="html").translated_text == "<b>21</b>"
        assert client.detect("123")[0].language == "de"
        assert client.languages()[0].targets
        assert client.frontend_settings().key_required
        path = Path(folder) / "a.txt"
        path.write_text("12\n34\n", "utf-8")
        address = client.translate_file(str(path), "de", "en").translated_file_url
        with urllib.request.urlopen(address) as answer:
            assert answer.read() == b"21\n43\n"
        try:
            client.suggest("12", "21", "de", "en")
        except module.ForbiddenError:
            pass  # the server has no file for suggestions
        try:
            message = client.translate("12", "zz", "en").translated_text
        except module.BadRequestError as error:
            message = str(error)
        assert "zz is not supported" in message

    async def run() -> None:
        async with module.AsyncLibreTranslate(url, api_key=KEY) as client:
            answers = await asyncio.gather(*(client.translate(str(number), "de", "en") for number in range(100, 120)))
            assert [each.translated_text for each in answers] == [str(number)[::-1] for number in range(100, 120)]

    asyncio.run(run())


def deep_translator(url: str) -> None:
    """POST with everything in the query string."""
    module = import_module("deep_translator")
    client = module.LibreTranslator(source="de", target="en", api_key=KEY, custom_url=f"{url}/")
    assert client.translate("a b & c=d 123") == "321 d=c & b a"
    assert client.translate_batch(["12", "34"]) == ["21", "43"]
    wrong = module.LibreTranslator(source="de", target="en", api_key="wrong", custom_url=f"{url}/")
    try:
        wrong.translate("12")
    except module.exceptions.AuthorizationException:
        return
    raise AssertionError("a wrong key was taken")


def transpolibre(url: str) -> None:
    """Gettext files, by the command."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "messages.po"
        path.write_text('msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "abc"\nmsgstr ""\n')
        program = Path(sys.executable).with_name("transpolibre")
        words = ["-s", "de", "-t", "en", "-u", url, "-a", KEY, "-f", str(path)]
        subprocess.run([str(program), *words], check=True, capture_output=True, cwd=folder)
        assert 'msgstr "cba"' in path.read_text("utf-8")


def wagtail_localize(url: str) -> None:
    """JSON lists of HTML."""
    _set_up_django()
    strings = import_module("wagtail_localize.strings")
    options = {"LIBRETRANSLATE_URL": url, "API_KEY": KEY}
    client = import_module("wagtail_localize.machine_translators.libretranslate").LibreTranslator(options)
    texts = [strings.StringValue("<b>12</b> &lt;34"), strings.StringValue("56")]
    german, english = SimpleNamespace(language_code="de-de"), SimpleNamespace(language_code="en-gb")
    assert client.can_translate(german, english)
    outputs = client.translate(german, english, texts)
    assert [outputs[text].data for text in texts] == ["43&lt; <b>21</b>", "65"]


def weblate(url: str) -> None:
    """Weblate's machinery module; its database and checks, which the requests do not touch, are stand-ins."""
    _set_up_django()
    folder = Path(str(import_module("django").__file__)).parents[1] / "weblate"
    for name in ("", ".utils"):  # without what their __init__ starts
        package = sys.modules[f"weblate{name}"] = ModuleType(f"weblate{name}")
        package.__path__ = [str(folder / name[1:])]
    for name in ("checks.utils", "lang.models", "utils.errors", "utils.similarity", "utils.forms", "utils.hash"):
        sys.modules[f"weblate.{name}"] = MagicMock()
    sys.modules["weblate.machinery.forms"] = sys.modules["weblate.logger"] = MagicMock()
    sys.modules["weblate.utils.site"] = MagicMock(get_site_url=lambda: "http://weblate.example/")
    sys.modules["weblate.utils.version"] = MagicMock(USER_AGENT="Weblate/5.14.3")
    client = import_module("weblate.machinery.libretranslate").LibreTranslateTranslation({"url": f"{url}/", "key": KEY})
    assert set(client.download_languages()) == {"de", "en"}
    outputs = client.download_multiple_translations("de", "en", [("12", None), ("34", None)])
    assert [outputs[text][0]["text"] for text in ("12", "34")] == ["21", "43"]


def mastodon(url: str) -> None:
    """The request of Mastodon's translation service: a JSON list of HTML, and the answer's keys that it reads."""
    fields = {"q": ['<p>12 <a href="/x">34</a></p>', "56"], "source": "auto", "target": "en", "format": "html"}
    body = json.dumps({**fields, "api_key": KEY}).encode()
    request = urllib.request.Request(f"{url}/translate", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        answers = json.load(answer)
    assert answers["translatedText"] == ['<p><a href="/x">43</a> 21</p>', "65"]
    assert [each["language"] for each in answers["detectedLanguage"]] == ["de", "de"]


def _set_up_django() -> None:
    settings = import_module("django.conf").settings
    if not settings.configured:
        settings.configure(USE_I18N=False)
        import_module("django").setup()


CLIENTS: list[Callable[[str], None]] = [
    libretranslatepy,
    libretranslate_aio,
    deep_translator,
    transpolibre,
    wagtail_localize,
    weblate,
    mastodon,
]


def main() -> None:
    """Run every client against the server at the address that is the first argument."""
    for client in CLIENTS:
        outcome = "right"
        try:
            client(sys.argv[1])
        except Exception as error:  # every client is tried
            line = traceback.extract_tb(error.__traceback__)[1].line
            outcome = f"{line}: {type(error).__name__} {error}".replace("\n", " ")[:300]
        print(f"{client.__name__}\t{outcome}", flush=True)


if __name__ == "__main__":
    main()
