"""What an installation of the service decides."""

from dataclasses import fields

from pydantic import ValidationError

from toolscript.client.settings import ClientSettings
from toolscript.core.errors import SetupError
from toolscript.core.settings.service import SecondNames, Settings, second_names
from toolscript.core.settings.unknown import warn_of_unknown
from toolscript.gateway.settings import GatewaySettings


def load_settings(others: SecondNames | None = None) -> "Settings":
    """The settings of the environment, or which of them cannot be used. Values stay out of the message.

    `others`: what stands under second names; unless given, what the environment has under them.
    """
    others = others or second_names()
    warn_of_unknown({*Settings.model_fields, *_names(GatewaySettings), *_names(ClientSettings)})
    try:
        return Settings(**others.values)
    except ValidationError as error:
        # What concerns several of them names them itself.
        problems = [
            "".join(f"TOOLSCRIPT_{str(name).upper()}: " for name in one["loc"][:1]) + one["msg"]
            for one in error.errors()
        ]
        raise SetupError("; ".join(problems), hint="docs/settings.md lists what each may be") from None


def _names(settings: type[GatewaySettings | ClientSettings]) -> set[str]:
    return {field.name for field in fields(settings)}
