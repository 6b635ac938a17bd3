"""Options that the gateway's commands share. Each beats its environment variable, which beats the default."""

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Config file to use instead of ~/.toolscript.json and the project's."),
]
DataDir = Annotated[Path | None, typer.Option(help="Folder for models and caches (TOOLSCRIPT_DATA_DIR).")]
Model = Annotated[str | None, typer.Option(help="Embedding model: a name or a folder (TOOLSCRIPT_SEARCH_MODEL).")]
Refresh = Annotated[bool, typer.Option("--refresh", help="Ask the servers again instead of remembering.")]
Port = Annotated[
    int | None,
    typer.Option(help="Port to listen on, 0 for a free one (TOOLSCRIPT_GATEWAY_PORT).", min=0, max=65535),
]


def flags(
    *, config: Path | None = None, data_dir: Path | None = None, model: str | None = None, port: int | None = None
) -> dict[str, object]:
    """As settings have them; what was not given is None."""
    return {
        "config": None if config is None else str(config),
        "data_dir": None if data_dir is None else str(data_dir),
        "search_model": model,
        "gateway_port": port,
    }
