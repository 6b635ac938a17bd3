"""The only reader of the environment. Every setting is an environment variable `TOOLSCRIPT_<NAME>`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolscript.settings.gateway import GatewaySettings, environment, load_gateway_settings
    from toolscript.settings.service import Settings, load_settings
    from toolscript.settings.terminal import colour_is_unwanted, keep_libraries_quiet

__all__ = [
    "GatewaySettings",
    "Settings",
    "colour_is_unwanted",
    "environment",
    "keep_libraries_quiet",
    "load_gateway_settings",
    "load_settings",
]

_HOMES = {
    "GatewaySettings": "gateway",
    "Settings": "service",
    "colour_is_unwanted": "terminal",
    "environment": "gateway",
    "keep_libraries_quiet": "terminal",
    "load_gateway_settings": "gateway",
    "load_settings": "service",
}


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the library that reads the service's settings takes longer to import than a search.
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(import_module(f"toolscript.settings.{_HOMES[name]}"), name)
