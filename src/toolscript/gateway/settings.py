"""What a person decides about the gateway. Plain dataclasses: the command line has to start at once."""

import os
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from toolscript.core.errors import SetupError
from toolscript.core.retrieval.query import MAX_LIMIT, SearchType
from toolscript.core.settings.unknown import warn_of_unknown
from toolscript.gateway.model import DEFAULT_LIMIT, DEFAULT_THRESHOLD

FLAG, ENVIRONMENT = "flag", "environment"
DEVICES = ("auto", "cpu", "gpu")
SEARCH_TYPES = tuple(one.value for one in SearchType)
LEVELS = ("debug", "info", "warning", "error")
# Settings of the gateway alone. Others may be the service's, whose names are not loaded here.
_PREFIXES = ("TOOLSCRIPT_GATEWAY_", "TOOLSCRIPT_SEARCH_")


def environment() -> Mapping[str, str]:
    """What config files may name in `${VAR}`."""
    return dict(os.environ)


def _setting(default: Any, read: Callable[[str], Any], accepts: str, description: str) -> Any:
    return field(default=default, metadata={"read": read, "accepts": accepts, "description": description})


def _between(minimum: float, maximum: float) -> Callable[[str], float]:
    def read(text: str) -> float:
        number = float(text)
        if not minimum <= number <= maximum:
            raise ValueError(f"must be {minimum:g} to {maximum:g}")
        return number

    return read


def _whole(minimum: int, maximum: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text)
        if not minimum <= number <= maximum:
            raise ValueError(f"must be {minimum} to {maximum}")
        return number

    return read


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text.lower()

    return read


def _yes_or_no(text: str) -> bool:
    return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]


def _token(text: str) -> str:
    """It has to fit into a header. The value stays out of the message."""
    if not (text.isascii() and text.isprintable()):
        raise ValueError("must be printable ASCII")
    return text


@dataclass(frozen=True)
class GatewaySettings:
    search_limit: int = _setting(
        DEFAULT_LIMIT,
        _whole(1, MAX_LIMIT),
        f"whole number from 1 to {MAX_LIMIT}",
        "How many tools a search shows.",
    )
    search_threshold: float = _setting(
        DEFAULT_THRESHOLD, _between(0, 1), "number from 0 to 1", "The least confidence a tool is shown with."
    )
    search_model: str = _setting(
        "Xenova/bge-small-en-v1.5", str, "text", "Name of an embedding model, or the folder of one in ONNX format."
    )
    search_alpha: float = _setting(
        0.7, _between(0, 1), "number from 0 to 1", "Weight of meaning; the rest is the weight of words."
    )
    search_type: str = _setting(
        SearchType.HYBRID.value,
        _one_of(*SEARCH_TYPES),
        ", ".join(f"`{one}`" for one in SEARCH_TYPES),
        "How a search that does not say it is made; `semantic` is literal mode.",
    )
    search_no_cache: bool = _setting(
        False, _yes_or_no, "true or false", "Neither read nor write embeddings and tools on disk."
    )
    search_device: str = _setting(
        "auto", _one_of(*DEVICES), ", ".join(f"`{one}`" for one in DEVICES), "What the model runs on."
    )
    data_dir: str = _setting(
        "~/.toolscript",
        str,
        "text",
        "Folder for models, embeddings, remembered tools and a running gateway.",
    )
    config: str = _setting("", str, "text", "A config file to use instead of the user's and the project's.")
    gateway_url: str = _setting(
        "", str, "text", "Address of a running gateway; empty: the one this machine knows."
    )
    gateway_port: int = _setting(
        7355, _whole(0, 65535), "whole number from 0 to 65535", "Port of the gateway; 0 takes a free one."
    )
    gateway_token: str = field(
        default="",
        repr=False,
        metadata={
            "read": _token,
            "accepts": "secret text",
            "description": "When set, every request must carry it as a bearer token.",
        },
    )
    gateway_log_level: str = _setting(
        "warning", _one_of(*LEVELS), ", ".join(f"`{one}`" for one in LEVELS), "What the gateway logs, to stderr."
    )

    text_model: str = _setting(
        "", str, "text", "Name of a language model that words queries for `eval make`; empty: none does."
    )
    text_url: str = _setting("", str, "text", "Its endpoint, which speaks OpenAI's chat protocol, up to `/v1`.")
    text_api_key: str = field(
        default="",
        repr=False,
        metadata={
            "read": _token,
            "accepts": "secret text",
            "description": "What the endpoint of the language model asks for.",
        },
    )

    # How each setting that is not left to its default was given. It decides nothing about their values.
    told: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def data_folder(self) -> Path:
        return Path(self.data_dir).expanduser()


def gateway_setting_fields() -> "list[Field[Any]]":
    return [field for field in fields(GatewaySettings) if "read" in field.metadata]


def load_gateway_settings(overrides: Mapping[str, object] | None = None) -> GatewaySettings:
    """Flag beats environment beats default. Values stay out of the message."""
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    told = dict.fromkeys(given, FLAG)
    warn_of_unknown(
        [gateway_setting_field.name for gateway_setting_field in gateway_setting_fields()], prefixes=_PREFIXES
    )
    for gateway_setting_field in gateway_setting_fields():
        text = os.environ.get(f"TOOLSCRIPT_{gateway_setting_field.name.upper()}", "").strip()
        if text and gateway_setting_field.name not in given:
            given[gateway_setting_field.name] = _read(
                gateway_setting_field.name,
                gateway_setting_field.metadata["read"],
                text,
                str(gateway_setting_field.metadata["accepts"]),
            )
            told[gateway_setting_field.name] = ENVIRONMENT
    return GatewaySettings(**given, told=told)  # type: ignore[arg-type]


def _read(name: str, read: Callable[[str], object], text: str, accepts: str) -> object:
    try:
        return read(text)
    except (ValueError, KeyError) as error:
        raise SetupError(
            f"TOOLSCRIPT_{name.upper()} cannot be used: expected {accepts}", hint="docs/settings.md lists them"
        ) from error


def keep_libraries_quiet() -> None:
    """ONNX Runtime tells its maker about every start and leaves an id in the home folder, unless told not to."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def colour_is_unwanted() -> bool:
    """https://no-color.org: set to anything but nothing."""
    return bool(os.environ.get("NO_COLOR"))
