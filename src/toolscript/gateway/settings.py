"""Settings of the gateway. Plain dataclasses, because the command line must start at once."""

import os
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from toolscript.core.errors import SetupError
from toolscript.core.retrieval.query import MAX_LIMIT, SearchType
from toolscript.core.settings.unknown import warn_of_unknown
from toolscript.gateway.approvals import Approvals
from toolscript.gateway.model import DEFAULT_LIMIT, DEFAULT_THRESHOLD

FLAG, ENVIRONMENT = "flag", "environment"
DEFAULT_DATA_DIR = "~/.toolscript"
# The value of `search_model` for sparse retrieval alone.
NO_MODEL = "none"
DEVICES = ("auto", "cpu", "gpu")
SEARCH_TYPES = tuple(search_type.value for search_type in SearchType)
NO_ACTIVITY, ACTIVITY_NAMES, ACTIVITY_ARGUMENTS = ACTIVITY = ("off", "names", "arguments")
LEVELS = ("debug", "info", "warning", "error")
# Prefixes of gateway-only settings. Other names may be the service's, which are not loaded here.
_PREFIXES = ("TOOLSCRIPT_GATEWAY_", "TOOLSCRIPT_SEARCH_")


def environment() -> Mapping[str, str]:
    """Return the variables that config files may reference as `${VAR}`."""
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
    """Check that the token fits into a header. The message does not contain the value."""
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
        DEFAULT_THRESHOLD, _between(0, 1), "number from 0 to 1", "Minimum confidence of a result."
    )
    search_model: str = _setting(
        "Xenova/bge-small-en-v1.5",
        str,
        "text",
        "Name of an embedding model, or the folder of one in ONNX format; `multilingual`: one that knows 50 "
        "languages, `builtin`: the English one in the package, `none`: keyword search alone.",
    )
    search_alpha: float = _setting(
        0.7, _between(0, 1), "number from 0 to 1", "Weight of the semantic score; the keyword score has the rest."
    )
    search_type: str = _setting(
        SearchType.HYBRID.value,
        _one_of(*SEARCH_TYPES),
        ", ".join(f"`{name}`" for name in SEARCH_TYPES),
        "Default search type; `semantic` is literal mode.",
    )
    search_no_cache: bool = _setting(
        False, _yes_or_no, "true or false", "Neither read nor write embeddings and tools on disk."
    )
    search_device: str = _setting(
        "auto", _one_of(*DEVICES), ", ".join(f"`{name}`" for name in DEVICES), "What the model runs on."
    )
    data_dir: str = _setting(
        DEFAULT_DATA_DIR,
        str,
        "text",
        "Folder for models, cached embeddings and tools, and the record of a running gateway.",
    )
    config: str = _setting("", str, "text", "A config file to use instead of the user's and the project's.")
    gateway_url: str = _setting(
        "", str, "text", "Address of a running gateway; empty: the one found on this machine."
    )
    gateway_port: int = _setting(
        7355, _whole(0, 65535), "whole number from 0 to 65535", "Port of the gateway; 0 takes a free one."
    )
    gateway_alone: bool = _setting(
        False, _yes_or_no, "true or false", "Commands neither join a running gateway nor start one (`--alone`)."
    )
    gateway_on_demand: bool = _setting(
        True,
        _yes_or_no,
        "true or false",
        "Commands start the gateway in the background if none runs; else they join a running one, or work alone.",
    )
    gateway_idle_seconds: float = _setting(
        600.0,
        _between(0, 7 * 24 * 3600),
        "number from 0 to 604800",
        "How long after its last call the process of an MCP server is ended; a call starts it again. 0: never, "
        "and all servers are started at once.",
    )
    gateway_split_calls: bool = _setting(
        False,
        _yes_or_no,
        "true or false",
        "MCP clients call destructive tools through `call_destructive_tool`, and all others through `call_tool`, "
        "which they can then be set to allow.",
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
        "warning", _one_of(*LEVELS), ", ".join(f"`{name}`" for name in LEVELS), "What the gateway logs, to stderr."
    )

    gateway_approvals: str = _setting(
        Approvals.DEFAULT.value,
        _one_of(*Approvals),
        ", ".join(f"`{mode}`" for mode in Approvals),
        "Which servers' new and changed tools are held until you approve them: those of projects and of remote "
        "servers, also your own local ones (`strict`), or none. What is not held is shown.",
    )
    gateway_activity: str = _setting(
        "names",
        _one_of(*ACTIVITY),
        ", ".join(f"`{name}`" for name in ACTIVITY),
        "What the activity log keeps of searches and calls: `names` (with times, sizes and outcomes), also their "
        "`arguments`, with secrets masked, or nothing.",
    )
    gateway_activity_rows: int = _setting(
        100_000,
        _whole(1_000, 10_000_000),
        "whole number from 1,000 to 10,000,000",
        "How many rows the activity log keeps; the oldest make room.",
    )
    gateway_activity_megabytes: int = _setting(
        64, _whole(1, 10_000), "whole number from 1 to 10,000", "How large the activity log gets, in MB."
    )

    text_model: str = _setting(
        "", str, "text", "Name of a language model that writes queries for `eval make`; empty: none."
    )
    text_url: str = _setting("", str, "text", "Its endpoint, which speaks OpenAI's chat protocol, up to `/v1`.")
    text_api_key: str = field(
        default="",
        repr=False,
        metadata={
            "read": _token,
            "accepts": "secret text",
            "description": "API key of the language model's endpoint.",
        },
    )

    # Source (flag or environment) of each setting that was set. It does not affect the values.
    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def data_folder(self) -> Path:
        return Path(self.data_dir).expanduser()


def usual_data_dir() -> str:
    """Return the data folder of commands without `--data-dir`."""
    return os.environ.get("TOOLSCRIPT_DATA_DIR", "").strip() or DEFAULT_DATA_DIR


def gateway_setting_fields() -> "list[Field[Any]]":
    return [field for field in fields(GatewaySettings) if "read" in field.metadata]


def load_gateway_settings(overrides: Mapping[str, object] | None = None) -> GatewaySettings:
    """Load the settings: flag beats environment beats default. Error messages do not contain values."""
    values = {name: value for name, value in (overrides or {}).items() if value is not None}
    sources = dict.fromkeys(values, FLAG)
    warn_of_unknown([setting.name for setting in gateway_setting_fields()], prefixes=_PREFIXES)
    for setting in gateway_setting_fields():
        text = os.environ.get(f"TOOLSCRIPT_{setting.name.upper()}", "").strip()
        if text and setting.name not in values:
            values[setting.name] = _read(
                setting.name,
                setting.metadata["read"],
                text,
                str(setting.metadata["accepts"]),
            )
            sources[setting.name] = ENVIRONMENT
    return GatewaySettings(**values, sources=sources)  # type: ignore[arg-type]


def _read(name: str, read: Callable[[str], object], text: str, accepts: str) -> object:
    try:
        return read(text)
    except (ValueError, KeyError) as error:
        raise SetupError(
            f"TOOLSCRIPT_{name.upper()} cannot be used: expected {accepts}", hint="docs/settings.md lists them"
        ) from error


def keep_libraries_quiet() -> None:
    """Disable ONNX Runtime's telemetry, which reports every start and writes an id to the home folder, and let the
    threads of OpenBLAS sleep when they have no work: they spin for milliseconds after each product of matrices.

    OpenBLAS reads its setting when NumPy is imported: call this before.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")


def colour_is_unwanted() -> bool:
    """Follow https://no-color.org: any non-empty value disables colour."""
    return bool(os.environ.get("NO_COLOR"))
