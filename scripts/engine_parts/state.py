"""State between runs: ports, process ids, and whether the engines are a cluster or containers."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Process:
    pid: int
    birth: str
    version: str


@dataclass
class State:
    file: Path
    cluster: bool = False
    ports: dict[str, int] = field(default_factory=dict)
    processes: dict[str, Process] = field(default_factory=dict)
    containers: bool = False
    container_ports: dict[str, int] = field(default_factory=dict)

    def save(self) -> None:
        content = {
            "cluster": self.cluster,
            "ports": self.ports,
            "processes": {name: asdict(process) for name, process in self.processes.items()},
            "containers": self.containers,
            "container_ports": self.container_ports,
        }
        draft = self.file.with_suffix(".draft")
        draft.write_text(json.dumps(content, indent=2) + "\n")
        draft.replace(self.file)


def load_state(file: Path) -> State:
    if not file.exists():
        return State(file)
    content = json.loads(file.read_text())
    processes = {name: Process(**process) for name, process in content["processes"].items()}
    # Files from before there were containers name none.
    containers, container_ports = content.get("containers", False), content.get("container_ports", {})
    return State(file, content["cluster"], content["ports"], processes, containers, container_ports)
