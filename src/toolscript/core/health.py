"""Health: alive, ready, and degraded are three different states."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from toolscript.core.web.routers import api_router


@dataclass(frozen=True)
class PartHealth:
    """Health of a dependency. `needed`: no search works without it."""

    ok: bool
    needed: bool
    note: str = ""


@dataclass(frozen=True)
class Health:
    """`serves`: whether this process takes requests, however its engines are."""

    parts: Mapping[str, PartHealth]
    serves: bool = True

    @property
    def status(self) -> str:
        if any(part.needed and not part.ok for part in self.parts.values()):
            return "unready"
        return "ready" if all(part.ok for part in self.parts.values()) else "degraded"


class PartShown(BaseModel):
    ok: bool = Field(description="Whether the part works.")
    note: str = Field(description="The problem; empty when there is none.")


class HealthShown(BaseModel):
    status: Literal["ready", "degraded", "unready"] = Field(
        description="`degraded`: it answers without some parts; `unready`: no search works without those that are "
        "down, or the process is ending."
    )
    parts: dict[str, PartShown] = Field(description="Each part by name.")


CheckHealth = Callable[[], Awaitable[Health]]


def health_routes(check_health: CheckHealth) -> APIRouter:
    router = api_router(tag="health")

    @router.get("/livez", summary="Is the process alive?")
    async def livez() -> dict[str, str]:
        """Answers while the process runs, whatever its engines do: for a liveness probe."""
        return {"status": "alive"}

    @router.get(
        "/readyz",
        response_model=HealthShown,
        responses={503: {"model": HealthShown, "description": "The process is ending."}},
        summary="Does this process serve, and are all of its parts up?",
    )
    async def readyz() -> JSONResponse:
        """For a readiness probe and a load balancer: 503 only while this process ends. An engine that is away is
        away for all processes, so that it is in `status` and `parts` alone: clients get the service's own answers.
        """
        health = await check_health()
        parts = {name: {"ok": part.ok, "note": part.note} for name, part in health.parts.items()}
        status = 200 if health.serves else 503
        return JSONResponse({"status": health.status, "parts": parts}, status)

    return router
