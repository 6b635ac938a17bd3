"""Config files on a real disk, for the tests of this folder."""

import json
from collections.abc import Mapping
from pathlib import Path

from toolscript.core.mcp_client.model import ServerSpec
from toolscript.gateway.config.problems import Problem, Severity
from toolscript.gateway.config.read import Config, read_config

NODE = {"command": "node"}


def write(path: Path, value: object) -> Path:
    """Write text unchanged, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def read(tmp_path: Path, servers: Mapping[str, object], environment: Mapping[str, str] | None = None) -> Config:
    path = write(tmp_path / ".toolscript.json", {"mcpServers": servers})
    return read_config([path], {"HOME": "/h"} if environment is None else environment)


def only(config: Config) -> ServerSpec:
    assert config.problems == ()
    assert len(config.servers) == 1
    return config.servers[0]


def errors(config: Config) -> list[Problem]:
    return [problem for problem in config.problems if problem.severity is Severity.ERROR]


def warnings(config: Config) -> list[Problem]:
    return [problem for problem in config.problems if problem.severity is Severity.WARNING]
