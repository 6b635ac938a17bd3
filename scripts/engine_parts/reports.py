"""Output of the commands: export lines for a shell, a table for users, JSON for programs."""

import shlex
from collections.abc import Mapping, Sequence

from .fleet import Engine, Fleet
from .mongo import Mongo
from .postgres import Postgres
from .qdrant import QdrantNode

COLUMNS = ("engine", "state", "pid", "port", "server", "log")


def export_lines(variables: Mapping[str, str]) -> str:
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())


def rows(fleet: Fleet) -> list[dict[str, str | int | None]]:
    return [_row(fleet, engine) for engine in fleet.engines()]


def table(entries: Sequence[Mapping[str, str | int | None]]) -> str:
    lines = [COLUMNS, *(tuple(str(row[column] or "-") for column in COLUMNS) for row in entries)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(COLUMNS))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _row(fleet: Fleet, engine: Engine) -> dict[str, str | int | None]:
    alive = fleet.is_alive(engine)
    process = fleet.state.processes[engine.name] if alive else None
    return {
        "engine": engine.name,
        "state": "up" if fleet.is_up(engine) else "not answering" if alive else "down",
        "pid": process.pid if process else None,
        "port": fleet.state.ports.get(engine.name),
        "server": process.version if process else None,
        "log": str(fleet.places.home / "logs" / f"{engine.name}.log"),
    }


def variables(fleet: Fleet) -> dict[str, str]:
    ports = fleet.state.ports
    found = _qdrant_variables(fleet)
    for engine in fleet.engines():
        if isinstance(engine, Postgres) and fleet.is_alive(engine):
            found["TOOLSCRIPT_POSTGRES_URL"] = engine.url(ports[engine.name])
        if isinstance(engine, Mongo) and fleet.is_alive(engine):
            found |= engine.variables(ports[engine.name])
    return found


def _qdrant_variables(fleet: Fleet) -> dict[str, str]:
    nodes = fleet.qdrant_nodes(fleet.state.cluster)
    alive = [node for node in nodes if fleet.is_alive(node)]
    if not alive:
        return {}
    variables = {
        "TOOLSCRIPT_QDRANT_URL": _url(fleet, alive[0]),
        "TOOLSCRIPT_QDRANT_GRPC_PORT": str(fleet.state.ports[alive[0].name] + 1),
    }
    if fleet.state.cluster:
        # A stopped node stays listed: clients must cope with it.
        variables["TOOLSCRIPT_QDRANT_NODES"] = ",".join(_url(fleet, node) for node in nodes)
    return variables


def _url(fleet: Fleet, node: QdrantNode) -> str:
    return f"http://127.0.0.1:{fleet.state.ports[node.name]}"
