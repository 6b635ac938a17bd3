"""A gateway over HTTP, for programs on the same machine."""

from toolscript.surfaces.gateway_http.app import create_gateway_app

__all__ = ["create_gateway_app"]
