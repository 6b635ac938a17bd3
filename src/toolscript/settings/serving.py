"""What an installation of the service decides about how much `serve` takes on at once, and how it ends."""

from pydantic import Field
from pydantic_settings import BaseSettings


class ServingSettings(BaseSettings):
    max_concurrent_searches: int = Field(
        default=24,
        ge=1,
        le=10_000,
        description="Searches and other reads that one process works on at once; more wait for their turn.",
    )
    max_concurrent_writes: int = Field(
        default=64,
        ge=1,
        le=10_000,
        description="Writes that one process works on at once; uploads of documents have limits of their own.",
    )
    max_queue_seconds: float = Field(
        default=0.5,
        ge=0,
        le=60,
        description="How long a request may wait for its turn; one that would wait longer is refused at once, "
        "with 503.",
    )
    max_connections: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="Connections one process has open, if the system lets it open so many files; beyond that the "
        "oldest one whose request has not arrived is closed.",
    )
    receive_seconds: float = Field(
        default=15.0,
        gt=0,
        le=3600,
        description="How long a client may take to send a request's headers, and then its body; "
        "uploads of documents have limits of their own.",
    )
    drain_seconds: float = Field(
        default=0.0,
        ge=0,
        le=600,
        description="How long `serve` goes on answering after SIGTERM or SIGHUP, with `/readyz` 503, so that a "
        "load balancer notices.",
    )
    shutdown_seconds: int = Field(
        default=20,
        ge=1,
        le=600,
        description="How long requests under way may take once `serve` has stopped listening; "
        "then they are cut off.",
    )
