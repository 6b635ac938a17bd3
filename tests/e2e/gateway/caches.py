"""Files of embeddings: where they are, what is in them, and vectors that nobody would make."""

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
    """Where the embeddings of the servers in the machine's config file have to be."""
    servers = json.loads(machine.config.read_text("utf-8"))["mcpServers"]
    return (data or machine.data) / "cache" / "embeddings" / file_name(servers)


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8")))


def card_of(path: Path) -> dict[str, Any]:
    return dict(read(path)["card"])


def vector_of(path: Path, tool: str) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(read(path)["tools"][tool]["vector"]), dtype="<f4")


def poison(path: Path) -> None:
    """Makes every vector one that no text gets, so that whoever uses it gives away that it was not made anew."""
    data = read(path)
    for entry in data["tools"].values():
        vector = np.zeros(data["card"]["dimensions"], dtype="<f4")
        vector[0] = 1
        entry["vector"] = base64.b64encode(vector.tobytes()).decode()
    path.write_text(json.dumps(data), "utf-8")


def is_poisoned(path: Path, tool: str) -> bool:
    return bool(vector_of(path, tool)[0] == 1)


def meaning(answer: dict[str, Any], tool: str) -> float:
    """How near to the query an explained answer says this tool is."""
    (found,) = (one for one in answer["results"] if one["toolId"] == tool)
    return float(found["parts"]["semantic"])
