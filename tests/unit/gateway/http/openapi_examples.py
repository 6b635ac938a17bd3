"""Sends valid and invalid requests to the gateway's whole HTTP API, and checks every response against OpenAPI.

By hand:

    python -m tests.unit.gateway.http.openapi_examples --examples 1000 --seed 7
"""

import asyncio
import sys

from schemathesis import Response
from starlette.applications import Starlette

from tests.support.random_requests import Api, Asked, main
from tests.unit.gateway.http.conftest import furnished_world, some_activity
from tests.unit.gateway.runtime.builders import World
from tests.unit.gateway.runtime.serving import open_app, serving

TOKEN = "of-the-owner"
KNOWN = {
    "tools": ("files__read_file", "files__write_file", "mail__send_mail", "demo__fails"),
    "servers": ("files", "mail", "demo"),
    "queries": ("read a file", "send_mail", "прогноз погоды", "天气预报"),
}
USES = {
    **dict.fromkeys(("path.tool_id", "body.id"), "tools"),
    **dict.fromkeys(("query.server[*]", "query.filter"), "servers"),
    **dict.fromkeys(("query.q", "body.query"), "queries"),
}


async def ask_gateway(examples: int, seed: int, *, edges: bool, only: str = "") -> dict[str, Asked]:
    async with furnished_world() as world, serving(app_of(world)) as url:
        api = Api(url, {"token": {"bearer": TOKEN}}, KNOWN, USES, _is_misfit, only)
        return await asyncio.to_thread(api.ask, examples, seed, edges=edges)


def app_of(world: World) -> Starlette:
    return open_app(world.gateway, token=TOKEN, activity=some_activity())


def _is_misfit(response: Response) -> bool:
    """Not every text is a cursor; this is no question of its shape."""
    return response.status_code == 422 and response.json()["error"]["details"].get("field") != "cursor"


def _by_hand(examples: int, seed: int, only: str) -> dict[str, Asked]:
    return asyncio.run(ask_gateway(examples, seed, edges=True, only=only))


if __name__ == "__main__":
    sys.exit(main(__doc__, _by_hand))
