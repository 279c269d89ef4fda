"""Proof that no request, as the server's own OpenAPI description allows it or not, makes the server fail.

It is part of `make prove-serve`. With `--model` it asks `heedful serve MODEL`, the page's routes among them; without, a
server that reverses texts.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.prove import serving_attacks as attacks

CHECKS: Final = "not_a_server_error,response_schema_conformance,content_type_conformance"
GET: Final = "GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
NUM_OPERATIONS: Final = 5
"""Operations with a body; the others have few distinct requests."""


@asynccontextmanager
async def serving(model: Path, threads: int = 1) -> AsyncGenerator[int]:
    """Serve a model with `heedful serve`, and give its port."""
    with tempfile.TemporaryDirectory() as folder:
        words = (
            "serve",
            model,
            "--port",
            "0",
            "--requests",
            "0",
            "--timeout",
            "600",
            "--suggestions",
            Path(folder, "suggestions.jsonl"),
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "heedful", *map(str, words), "--threads", str(threads)), stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        try:
            async for line in process.stderr:
                if match := re.search(rb"serving on http://[^ ]*:(\d+)", line):
                    break
            else:
                raise RuntimeError(f"heedful serve {model} ended with {await process.wait()}")
            yield int(match[1])
        finally:
            process.kill()
            await process.wait()


@asynccontextmanager
async def reversing(**options: str) -> AsyncGenerator[int]:
    """Serve a model that reverses texts, and give the server's port."""
    with tempfile.TemporaryDirectory() as folder:
        async with attacks.running(suggestions=str(Path(folder, "suggestions.jsonl")), **options) as server:
            yield server.port


def with_languages(description: Any, codes: list[str]) -> Any:
    """OpenAPI description whose language codes are those of the server, so that most requests reach the model."""
    if isinstance(description, list):
        return [with_languages(each, codes) for each in description]
    if not isinstance(description, dict):
        return description
    members = {name: with_languages(value, codes) for name, value in description.items()}
    for name in ("source", "target", "source_lang", "target_lang"):
        if isinstance(members.get(name), dict) and members[name].get("type") == "string":
            members[name] = {"type": "string", "enum": codes}
    return members


async def prove_schema(cases: int, model: Path | None = None, **options: str) -> bool:
    """No answer is 500 or above, and every answer is as described."""
    async with serving(model) if model else reversing(**options) as port:
        _, _, body = await attacks.ask(port, GET.format("/languages").encode())
        codes = [each["code"] for each in json.loads(body)]
        _, _, body = await attacks.ask(port, GET.format("/openapi.json").encode())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "openapi.json")
            path.write_text(json.dumps(with_languages(json.loads(body), [*codes, "auto"])), "utf-8")
            started = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                *(str(Path(sys.executable).with_name("schemathesis")), "run", str(path)),
                *("--url", f"http://127.0.0.1:{port}", "--checks", CHECKS, "--phases", "examples,coverage,fuzzing"),
                *("--max-examples", str(-(-cases // NUM_OPERATIONS)), "--continue-on-failure", "--no-color"),
                *("--generation-database", "none", "--seed", "1"),
                stdout=subprocess.PIPE,
                cwd=folder,
            )
            output = (await process.communicate())[0].decode("utf-8")
    number = re.search(r"(\d+) generated", output)
    print(
        f"schema: {number[1] if number else 0} cases in {time.monotonic() - started:.0f} s, exit {process.returncode}"
    )
    if process.returncode:
        print(output)
    return process.returncode == 0 and number is not None and int(number[1]) >= cases


def main() -> int:
    """Run the proof."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--model", type=Path)
    options = parser.parse_args()
    is_kept = asyncio.run(prove_schema(options.cases, options.model))
    print(f"schema: {'kept' if is_kept else 'NOT KEPT'}")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
