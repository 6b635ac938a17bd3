"""The HTTP API of the service."""

from toolscript.surfaces.http.app import create_app
from toolscript.surfaces.http.health import Health, PartHealth

__all__ = ["Health", "PartHealth", "create_app"]
