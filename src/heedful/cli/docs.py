"""Open the manual, or print its section about a topic.

Without TOPIC, the manual is written as pages that a browser opens, offline. TOPIC is a heading, or words of one.

Examples:
  heedful docs
  heedful docs bring-your-data
  heedful docs 'hugging face'
  heedful docs --list
  heedful docs --html manual --language zh
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from heedful.cli.messages import Messages
from heedful.cli.options import Debug, IdleDevice, IdleThreads, Quiet
from heedful.errors import ResourceError

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Heading, or words of one.", show_default=False)]
Listing = Annotated[bool, typer.Option("--list", help="List the headings.")]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FOLDER", help="Write the pages here, and open none of them.")
]
Language = Annotated[
    Literal["en", "zh"] | None,
    typer.Option(metavar="en|zh", help="Language of the manual.", show_default="that of the locale"),
]


def run(
    topic: Topic = "",
    is_list: Listing = False,
    html: Html = None,
    language: Language = None,
    device: IdleDevice = "auto",
    threads: IdleThreads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Open the manual.

    Raises:
        ResourceError: the pages cannot be written.
    """
    from heedful.pages.manual import find_section, sections

    chosen = language or _language_of_locale()
    if is_list:
        print("\n".join(f"{one.anchor:<50} {one.title}" for one in sections(chosen)))
    elif topic:
        _print(find_section(topic, chosen).text)
    else:
        _open(html, chosen, Messages(quiet))


def _language_of_locale() -> str:
    names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, names), "").startswith("zh") else "en"


def _print(text: str) -> None:
    """Print Markdown: drawn on a terminal, as it is elsewhere."""
    if not sys.stdout.isatty():
        print(text, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))


def _open(folder: Path | None, language: str, messages: Messages) -> None:
    """Write the pages, print the path of the first, and open it where nobody named a folder and there is a browser.

    Raises:
        ResourceError: the pages cannot be written.
    """
    import tempfile
    import webbrowser

    from heedful.pages.manual import write_pages

    try:
        first = write_pages(folder or Path(tempfile.mkdtemp(prefix="heedful-docs-")), language)
    except OSError as error:
        raise ResourceError(f"{folder}: manual not written: {error.strerror or error}") from None
    print(first)
    if folder is None and sys.stdout.isatty() and not webbrowser.open(first.resolve().as_uri()):
        messages.say("no browser found; print a section instead: heedful docs start")
