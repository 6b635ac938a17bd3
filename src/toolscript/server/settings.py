"""Loads the settings of the service."""

from dataclasses import fields

from pydantic import ValidationError

from toolscript.client.settings import ClientSettings
from toolscript.core.errors import SetupError
from toolscript.core.settings.service import (
    KEYS_WITHOUT_ISSUER,
    AlternativeNames,
    Settings,
    read_alternative_names,
)
from toolscript.core.settings.unknown import warn_of_unknown
from toolscript.gateway.settings import GatewaySettings

PYDANTIC_PREFIX = "Value error, "
VALUES_HINT = "docs/settings.md lists the allowed values"
HINTS = {
    KEYS_WITHOUT_ISSUER: "set TOOLSCRIPT_JWT_ISSUER to the issuer of the tokens, their claim `iss`",
}


def load_settings(others: AlternativeNames | None = None) -> "Settings":
    """Return the settings from the environment. Raise with the invalid ones, without their values.

    `others`: settings under alternative names; by default those of the environment.
    """
    others = others or read_alternative_names()
    warn_of_unknown({*Settings.model_fields, *_names(GatewaySettings), *_names(ClientSettings)})
    try:
        return Settings(**others.values)
    except ValidationError as error:
        # A problem of several settings names them itself.
        problems = [
            "".join(f"TOOLSCRIPT_{str(name).upper()}: " for name in problem["loc"][:1])
            + problem["msg"].removeprefix(PYDANTIC_PREFIX)
            for problem in error.errors()
        ]
        hint = next((HINTS[problem] for problem in problems if problem in HINTS), VALUES_HINT)
        raise SetupError("; ".join(problems), hint=hint) from None


def _names(settings: type[GatewaySettings | ClientSettings]) -> set[str]:
    return {field.name for field in fields(settings)}
