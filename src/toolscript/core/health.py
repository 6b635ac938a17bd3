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
    parts: Mapping[str, PartHealth]

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
        description="`degraded`: it answers without some parts."
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
        responses={503: {"model": HealthShown, "description": "A required part is down."}},
        summary="Can the service answer searches, and are all of its parts up?",
    )
    async def readyz() -> JSONResponse:
        """Asks every engine, and answers 503 when no search works: for a readiness probe and a load balancer."""
        health = await check_health()
        parts = {name: {"ok": part.ok, "note": part.note} for name, part in health.parts.items()}
        status = 503 if health.status == "unready" else 200
        return JSONResponse({"status": health.status, "parts": parts}, status)

    return router
