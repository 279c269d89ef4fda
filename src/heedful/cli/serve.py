"""Serve models: a web page, and the interfaces of LibreTranslate, DeepL, Hugging Face and OpenAI.

The server listens on this machine only, and refuses requests of other sites. Several models serve several language
pairs, and chains of them, such as German to English to Chinese. Models that classify, encode, caption or answer have
addresses of their own, /models/NAME, and /v1/embeddings. It needs no PyTorch where a model has an exported engine.

Examples:
  heedful serve pairs.model
  heedful serve de-en.model en-zh.model reviews.model --port 8000
  heedful serve pairs.model --host 0.0.0.0 --allow-host translate.example.org --api-key-file keys.txt
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heedful.cli.memory_notes import warn_of_damage
from heedful.cli.messages import Messages
from heedful.cli.options import FILES, Debug, Device, Engine, Quiet, Threads, named_device, use_threads
from heedful.errors import UsageError, needed_for
from heedful.files.bounded_read import read_text

if TYPE_CHECKING:
    from heedful.serving.catalog import Catalog

GUARD: Final = "Guard"
LIMITS: Final = "Limits"
MOST_BYTES_OF_KEYS: Final = 1_000_000

Models = Annotated[list[Path], typer.Argument(metavar="MODEL", help="Model folders.", show_default=False)]
Host = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 = all.", rich_help_panel=GUARD)
]
Port = Annotated[
    int, typer.Option(min=0, max=65535, metavar="INTEGER", help="Port; 0 = any free one.", rich_help_panel=GUARD)
]
Cors = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ORIGIN", help="Site that may use the server, such as https://example.org.", rich_help_panel=GUARD
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Further name of the server in Host headers.", rich_help_panel=GUARD),
]
ApiKey = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY",
        help="Key that requests must carry; other users of this machine can see it, so prefer --api-key-file.",
        rich_help_panel=GUARD,
    ),
]
ApiKeyFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File of such keys, one per line.", rich_help_panel=GUARD)
]
SuggestionsPath = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File that /suggest appends translations to.", rich_help_panel=FILES),
]
Correct = Annotated[
    bool,
    typer.Option(
        "--correct",
        help="Let /suggest correct the model at once, as heedful correct does.",
        rich_help_panel=FILES,
    ),
]
LinksPath = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="File that word links corrected on the page are appended to.", rich_help_panel=FILES
    ),
]
Characters = Annotated[
    int, typer.Option(min=1, max=1_000_000, metavar="INTEGER", help="Characters of a request.", rich_help_panel=LIMITS)
]
Alternatives = Annotated[
    int, typer.Option(min=0, max=100, metavar="INTEGER", help="Alternatives of a text.", rich_help_panel=LIMITS)
]
Rate = Annotated[
    int,
    typer.Option(
        min=0,
        max=10_000_000,
        metavar="INTEGER",
        help="Requests per minute of one address; 0 = any number.",
        rich_help_panel=LIMITS,
    ),
]
Waiting = Annotated[
    int, typer.Option(min=1, max=100_000, metavar="INTEGER", help="Requests that may wait.", rich_help_panel=LIMITS)
]
Seconds = Annotated[
    float,
    typer.Option(
        min=0.1, max=3600.0, metavar="FLOAT", help="Time to answer a request in seconds.", rich_help_panel=LIMITS
    ),
]


def run(
    models: Models,
    host: Host = "127.0.0.1",
    port: Port = 5000,
    cors: Cors = None,
    allow_host: AllowHost = None,
    api_key: ApiKey = None,
    api_key_file: ApiKeyFile = None,
    suggestions: SuggestionsPath = None,
    correct: Correct = False,
    links: LinksPath = None,
    characters: Characters = 5000,
    alternatives: Alternatives = 10,
    requests: Rate = 6000,
    waiting: Waiting = 2000,
    timeout: Seconds = 30.0,
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Serve models."""
    use_threads(threads)
    with needed_for("heedful serve"):
        from heedful.serving.app import guarded, make_app_with_page
        from heedful.serving.catalog import open_models
        from heedful.serving.guard import Hosts
        from heedful.serving.keys import Keys
        from heedful.serving.limits import Limits
        from heedful.serving.server import BACKLOG, listen, make_server
        from heedful.serving.service import Service
        from heedful.serving.suggestions import LinksFile, Suggestions

    messages = Messages(quiet)
    origins = _checked(cors or ())
    keys = Keys([*(api_key or ()), *(_keys_of(api_key_file) if api_key_file else ())])
    limits = Limits(
        characters, alternatives, max(20_000, characters * 4), 500, requests, queue=waiting, answer_seconds=timeout
    )
    with listen(host, port) as bound:
        catalog = open_models(models, engine, named_device(device))
        files = Suggestions(suggestions) if suggestions else None, LinksFile(links) if links else None
        service = Service(catalog, limits, keys, *files, correct)
        app = guarded(make_app_with_page(service), service, Hosts(host, allow_host or ()), origins)
        _announce(catalog, messages)
        bound.listen(BACKLOG)  # from here on clients may connect
        name = f"[{host}]" if ":" in host else host
        messages.say(f"serving on http://{name}:{bound.getsockname()[1]} (Ctrl-C stops)")
        make_server(app, limits).run([bound])


def _announce(catalog: "Catalog", messages: Messages) -> None:
    """Say what each model does on this server, and which files beside it are damaged."""
    for model in catalog.named.values():
        messages.say(catalog.role_of(model))
    for translator in catalog.translators:
        warn_of_damage(translator, messages)


def _checked(origins: Sequence[str]) -> Sequence[str]:
    """Origins, each with a scheme.

    Raises:
        UsageError: one is no origin.
    """
    for origin in origins:
        if origin != "*" and "://" not in origin:
            raise UsageError(f"--cors {origin!r}: expected an origin such as https://example.org")
    return origins


def _keys_of(path: Path) -> list[str]:
    """Keys of a file, one per line.

    Raises:
        UsageError: the file has no key.
        DamagedFile: the path is not a regular file of UTF-8, or too large.
    """
    keys = [line.strip() for line in read_text(path, MOST_BYTES_OF_KEYS).split("\n") if line.strip()]
    if not keys:
        raise UsageError(f"--api-key-file {path}: no key; write one per line")
    return keys
