"""The only reader of the environment. Every setting is an environment variable `TOOLSCRIPT_<NAME>`."""

from typing import TYPE_CHECKING

from toolscript.late_names import late_names

if TYPE_CHECKING:
    from toolscript.settings.client import ClientSettings, load_client_settings
    from toolscript.settings.gateway import ENVIRONMENT, GatewaySettings, environment, load_gateway_settings
    from toolscript.settings.service import Settings, load_settings
    from toolscript.settings.shared_names import second_names
    from toolscript.settings.terminal import colour_is_unwanted, keep_libraries_quiet

__all__ = [
    "ENVIRONMENT",
    "ClientSettings",
    "GatewaySettings",
    "Settings",
    "colour_is_unwanted",
    "environment",
    "keep_libraries_quiet",
    "load_client_settings",
    "load_gateway_settings",
    "load_settings",
    "second_names",
]

_HOMES = {
    "ENVIRONMENT": "gateway",
    "ClientSettings": "client",
    "GatewaySettings": "gateway",
    "Settings": "service",
    "colour_is_unwanted": "terminal",
    "environment": "gateway",
    "keep_libraries_quiet": "terminal",
    "load_client_settings": "client",
    "load_gateway_settings": "gateway",
    "load_settings": "service",
    "second_names": "shared_names",
}

# The library that reads the service's settings takes longer to import than a search.
__getattr__ = late_names(__name__, _HOMES)
