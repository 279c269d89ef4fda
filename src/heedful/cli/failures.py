"""Errors as one line and an exit code."""

import errno
import os
import re
from typing import Final, NamedTuple

import typer

from heedful.config.plugins import custom_line
from heedful.errors import (
    ConfigError,
    DataError,
    EndedElsewhere,
    FileRefused,
    HeedfulError,
    MissingExtra,
    NonFiniteError,
    ResourceError,
    Stopped,
    UsageError,
    did_you_mean,
    is_lost_device,
    is_out_of_memory,
    missing_extra,
)

_EXHAUSTED: Final = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
)
_SPACES: Final = re.compile(r"\s++")
_LINE_END: Final = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_LONE_SURROGATES: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")


class Failure(NamedTuple):
    """Message and exit code of an error."""

    message: str
    """Text after "heedful: "; empty = print nothing."""
    exit_code: int
    topic: str = ""
    """Section of the manual that explains errors of this kind; empty = none does."""


_TOPICS: Final[tuple[tuple[type[HeedfulError], str], ...]] = (
    (ConfigError, "settings-that-are-refused"),
    (DataError, "data-that-cannot-be-read"),
    (FileRefused, "models-that-are-refused"),
    (NonFiniteError, "a-loss-that-is-not-finite"),
    (ResourceError, "out-of-memory-disk-or-time"),
    (MissingExtra, "packages-that-are-missing"),
)
"""Sections of the guide about kinds of errors."""


def explain(error: BaseException) -> Failure:
    """Explain an error in one line, and name the section of the manual about errors of its kind."""
    failure = _explain(error)
    code = failure.exit_code
    by_code = {
        1: "errors-of-heedful",
        2: "commands-that-are-refused",
        5: "out-of-memory-disk-or-time",
        6: "packages-that-are-missing",
    }
    topic = next((topic for kind, topic in _TOPICS if isinstance(error, kind)), by_code.get(code, ""))
    return failure._replace(topic=topic if failure.message.startswith("error: ") else "")


def _explain(error: BaseException) -> Failure:
    match error:
        case Stopped():
            return Failure(_one_line(str(error)), error.exit_code)
        case EndedElsewhere():
            return Failure("", error.exit_code)
        case KeyboardInterrupt():
            return Failure("interrupted", 130)
        case BrokenPipeError():
            # The reader of the output left early, as `head` does: no error. A shell reports SIGPIPE as 141.
            return Failure("", 141)
        case HeedfulError():
            return _failure(str(error), error.exit_code)
        case typer.TyperException():
            return _failure(_usage(error), 2)
        case ModuleNotFoundError() if (missing := missing_extra(error, "this command")) is not None:
            return _failure(str(missing), missing.exit_code)
        case _:
            pass
    if is_out_of_memory(error):
        return _failure(
            "out of memory; use smaller batches: --batch-tokens, or training.batch_tokens and another --out", 5
        )
    if is_lost_device(error):
        reason = str(error).partition("\n")[0]
        return _failure(f"the GPU failed: {reason}; run the same command again, or with --device cpu", 5)
    if isinstance(error, OSError):
        return _system_failure(error)
    kind = type(error).__name__
    if line := custom_line(error):
        return _failure(f"{line}: {kind}: {error}; run again with --debug for the traceback", UsageError.exit_code)
    return _failure(f"{kind}: {error}: this is a bug in heedful; run again with --debug for the traceback", 1)


def _failure(message: str, exit_code: int) -> Failure:
    return Failure(f"error: {_one_line(message)}", exit_code)


def _one_line(message: str) -> str:
    # In a locale without UTF-8, Python hides undecodable bytes of arguments and file names in surrogates. Those of JSON
    # (\ud800) hide nothing.
    text = _LONE_SURROGATES.sub("\ufffd", message).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return _SPACES.sub(lambda spaces: " " if _LINE_END.search(spaces[0]) else spaces[0], text).strip()


def _system_failure(error: OSError) -> Failure:
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    if error.errno == errno.EBADF and not where:
        return _failure("standard output is closed", 2)
    if error.errno in _EXHAUSTED:
        return _failure(f"{where}{reason}; free some space and run the same command", ResourceError.exit_code)
    if error.errno == errno.EROFS:
        return _failure(f"{where}{reason}; write to another disk", ResourceError.exit_code)
    return _failure(f"{where}{reason}", 2)


_WORDING: Final = (
    (re.compile(r"Value error, "), ""),
    (re.compile(r"Input should be a valid \w+, unable to parse string as (an? \w+)"), r"expected \1"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"expected \1 or less"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"expected \1 or more"),
)
"""Messages of the library that parses options, and ours."""


def _usage(error: typer.TyperException) -> str:
    """Usage error in one line: the command, the problem, what to do."""
    context = getattr(error, "ctx", None)
    command = str(context.command_path) if context is not None else "heedful"
    name = command.partition(" ")[2]
    option, possible = getattr(error, "option_name", ""), getattr(error, "possibilities", None)
    if option and possible:
        message = f"no such option {option}{did_you_mean(option, sorted(possible))}"
    else:
        message = error.format_message().rstrip(".")
        message = message[:1].lower() + message[1:]
        for pattern, wording in _WORDING:
            message = pattern.sub(wording, message)
    return f"{name}: {message}; see: {command} --help" if name else f"{message}; see: {command} --help"
