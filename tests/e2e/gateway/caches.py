"""Cache files of embeddings: paths, contents, and poisoned vectors."""

import base64
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.e2e.gateway.machines import Machine


def file_name(servers: Iterable[str]) -> str:
    listed = json.dumps(sorted(servers), ensure_ascii=False)
    return f"embeddings-{hashlib.sha256(listed.encode()).hexdigest()}.json"


def embeddings_of(machine: Machine, data: Path | None = None) -> Path:
    """Return the expected cache file for the servers in the machine's config."""
    servers = json.loads(machine.config.read_text("utf-8"))["mcpServers"]
    return (data or machine.data) / "cache" / "embeddings" / file_name(servers)


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8")))


def card_of(path: Path) -> dict[str, Any]:
    return dict(read(path)["card"])


def vector_of(path: Path, tool: str) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(read(path)["tools"][tool]["vector"]), dtype="<f4")


def poison(path: Path) -> None:
    """Replace every vector by an impossible one, so that its use shows that nothing was embedded again."""
    data = read(path)
    for entry in data["tools"].values():
        vector = np.zeros(data["card"]["dimensions"], dtype="<f4")
        vector[0] = 1
        entry["vector"] = base64.b64encode(vector.tobytes()).decode()
    path.write_text(json.dumps(data), "utf-8")


def is_poisoned(path: Path, tool: str) -> bool:
    return bool(vector_of(path, tool)[0] == 1)


def meaning(answer: dict[str, Any], tool: str) -> float:
    """Return the dense similarity of this tool in an explained answer."""
    (result,) = (item for item in answer["results"] if item["toolId"] == tool)
    return float(result["parts"]["semantic"])
