"""Reviews over HTTP: what is not approved, and a person's decisions. A decision needs the gateway's token."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolscript.core.errors import Unauthorized
from toolscript.core.mcp.arguments import require_known, texts
from toolscript.gateway.api import HAS_CREDENTIAL, json_object, page_of, parameter_of
from toolscript.gateway.approvals import Decision, Review, Status, review_shown
from toolscript.gateway.model import Gateway
from toolscript.gateway.openapi import MAX_DECIDED, REVIEWS_PATH


def review_routes(gateway: Gateway) -> list[Route]:
    async def list_reviews(request: Request) -> Response:
        """List what is not approved, in order of server and name."""
        server, status = request.query_params.get("server", ""), request.query_params.get("status", "")
        if status:
            parameter_of(request, "status", "", [*Status])
        wanted = [
            review
            for review in await gateway.reviews()
            if server in ("", review.server) and status in ("", review.status)
        ]
        reviews, next_cursor = page_of(request, wanted, _position)
        results = await asyncio.to_thread(_shown, reviews, compared=bool(request.scope.get(HAS_CREDENTIAL)))
        return JSONResponse({"results": results, "next_cursor": next_cursor})

    async def decide(request: Request) -> Response:
        if not request.scope.get(HAS_CREDENTIAL):
            raise Unauthorized(
                "a decision about a tool requires its user's own token",
                hint="ask the user: they decide with `toolscript review` in a terminal",
            )
        body = json_object(await request.body(), "send the digests of reviews: `digests`")
        require_known("a decision", body, ("digests",), word="field")
        digests = texts({"digests": None, **body}, "digests", MAX_DECIDED, "digests")
        decision = Decision(request.url.path.rpartition("/")[2])
        decided = await gateway.decide(decision, tuple(dict.fromkeys(digests)))
        return JSONResponse({"results": await asyncio.to_thread(_shown, decided, compared=True)})

    decisions = [Route(f"{REVIEWS_PATH}/{decision}", decide, methods=["POST"]) for decision in Decision]
    return [Route(REVIEWS_PATH, list_reviews, methods=["GET"]), *decisions]


def _shown(reviews: Sequence[Review], *, compared: bool) -> list[dict[str, object]]:
    return [review_shown(review, compared=compared) for review in reviews]


def _position(review: Review) -> str:
    return "\0".join((review.server, review.name, review.kind, review.digest))
