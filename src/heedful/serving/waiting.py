"""Work for a client that may leave: it is cancelled as soon as the connection closes."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

ResultT = TypeVar("ResultT")


async def while_connected(request: Request, work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run work until it is done or the client has left.

    Args:
        request: request whose body was read to its end.
        work: coroutine to run; cancelled if the client leaves.

    Returns:
        The work's result.

    Raises:
        HTTPException: 499, the client left; nobody reads this answer.
    """
    task = asyncio.ensure_future(work)
    departure = asyncio.ensure_future(_departure(request))
    try:
        await asyncio.wait((task, departure), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        for each in (task, departure):
            each.cancel()
        await asyncio.gather(task, departure, return_exceptions=True)
    raise HTTPException(499, "the client left")


async def _departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
