"""The engines from their official images, in containers of Docker or Podman: same users, rights and variables.

The one module here that needs packages, so it is imported only where containers are asked for or were made before.
"""

import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from docker.errors import DockerException, NotFound
from pymongo import MongoClient
from pymongo.errors import PyMongoError
from requests import RequestException
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from . import mongo_users
from .fleet import Fleet
from .messages import EnginesError, say
from .mongo import Mongo
from .passwords import stored_password
from .places import Places
from .ports import choose_port
from .postgres import SET_UP, SETTINGS, Postgres
from .processes import wait_until
from .qdrant import QdrantNode

# The images that operators are shown are the ones that are tested.
COMPOSE_FILE = Path(__file__).parents[2] / "deploy" / "compose.yaml"
IMAGE_LABEL = "toolscript.image"
READY_SECONDS = 120
STOP_SECONDS = 30
MONGO_ADMIN = "admin"

# The package `docker` has no types.
Container = Any


class NoContainerEngine(EnginesError):
    """Nothing answers where Docker's or Podman's socket should be."""


def _nothing(_container: Container, _port: int) -> None:
    pass


@dataclass(frozen=True)
class Recipe:
    """How an image is run. `inner_ports` are published on as many ports in a row; functions get the first."""

    inner_ports: tuple[int, ...]
    environment: Mapping[str, str]
    is_ready: Callable[[Container, int], bool]
    finish: Callable[[Container, int], None] = _nothing
    command: list[str] = field(default_factory=list)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Containers:
    fleet: Fleet

    @cached_property
    def recipes(self) -> Mapping[str, Recipe]:
        places = self.fleet.places
        return {"qdrant": _qdrant(places), "postgres": _postgres(places), "mongo": _mongo(places)}

    def start(self) -> None:
        # The reaper of testcontainers would take them away when this script ends.
        testcontainers_config.ryuk_disabled = True
        with _translated_errors():
            self._client.client.ping()
            self._remember(True)
            running = {name: self._run(name) for name in self.recipes}
            for name, container in running.items():
                self._wait_until_ready(name, container)
                self.recipes[name].finish(container, self._port(name))

    def stop(self) -> None:
        """Whoever has no container engine any more can still go back to packages."""
        try:
            self._stop()
        except NoContainerEngine as problem:
            say(f"{problem}; left the containers as they are")
        self._remember(False)

    def remove(self) -> None:
        with _translated_errors():
            for name in self.recipes:
                container = self._find(name)
                if container:
                    say(f"removing {container.name}")
                    container.remove(v=True, force=True)

    def rows(self) -> list[dict[str, str | int | None]]:
        with _translated_errors():
            return [self._row(name) for name in self.recipes]

    def variables(self) -> dict[str, str]:
        with _translated_errors():
            if not all(self._running(name) for name in self.recipes):
                return {}
        places, qdrant, mongo = self.fleet.places, self._port("qdrant"), self._port("mongo")
        return {
            "TOOLSCRIPT_QDRANT_URL": f"http://127.0.0.1:{qdrant}",
            "TOOLSCRIPT_QDRANT_GRPC_PORT": str(qdrant + 1),
            "TOOLSCRIPT_POSTGRES_URL": Postgres(places).url(self._port("postgres")),
            "TOOLSCRIPT_MONGO_URL": mongo_users.url(places, mongo_users.READER, mongo),
            "TOOLSCRIPT_MONGO_WRITER_URL": mongo_users.url(places, mongo_users.WRITER, mongo),
        }

    @cached_property
    def _client(self) -> DockerClient:
        try:
            return DockerClient()
        except DockerException as problem:
            raise NoContainerEngine(
                f"no container engine answers ({problem}); start Docker or Podman, whose socket DOCKER_HOST names"
            ) from None

    def _remember(self, are_chosen: bool) -> None:
        self.fleet.state.containers = are_chosen
        self.fleet.state.save()

    def _stop(self) -> None:
        with _translated_errors():
            for name in self.recipes:
                container = self._running(name)
                if container:
                    say(f"stopping {container.name}")
                    container.stop(timeout=STOP_SECONDS)

    def _find(self, name: str) -> Container | None:
        try:
            return self._client.client.containers.get(self._name(name))
        except NotFound:
            return None

    def _running(self, name: str) -> Container | None:
        container = self._find(name)
        return container if container and container.status == "running" else None

    def _run(self, name: str) -> Container:
        """The container of last time with its data, or else a new one."""
        container, image = self._find(name), _image(name)
        if container and name not in self.fleet.state.container_ports:
            say(f"removing {container.name}, whose passwords are lost")
            container.remove(v=True, force=True)
            container = None
        if container is None:
            return self._make(name, image)
        made_from = container.labels.get(IMAGE_LABEL)
        if made_from != image:
            raise EnginesError(
                f"{container.name} was made from {made_from}, not {image}; "
                "run `scripts/engines reset` to start with empty data"
            )
        if container.status != "running":
            say(f"starting {container.name} on 127.0.0.1:{self._port(name)}")
            container.start()
        return container

    def _make(self, name: str, image: str) -> Container:
        recipe, state = self.recipes[name], self.fleet.state
        taken = [*state.ports.values(), *state.container_ports.values()]
        port = choose_port(state.container_ports.get(name), len(recipe.inner_ports), taken)
        say(f"starting {image} on 127.0.0.1:{port}")
        made = DockerContainer(image, name=self._name(name), env=dict(recipe.environment))
        made.with_command(recipe.command).with_kwargs(labels={IMAGE_LABEL: image}, **recipe.options)
        for offset, inner in enumerate(recipe.inner_ports):
            # `with_bind_ports` takes no address, and so would publish to the network.
            made.ports[f"{inner}/tcp"] = ("127.0.0.1", port + offset)  # type: ignore[assignment]
        state.container_ports[name] = port
        state.save()
        return made.start().get_wrapped_container()

    def _wait_until_ready(self, name: str, container: Container) -> None:
        def is_over() -> bool:
            container.reload()
            return container.status != "running" or self.recipes[name].is_ready(container, self._port(name))

        if not wait_until(is_over, READY_SECONDS) or container.status != "running":
            say(container.logs(tail=20).decode(errors="replace").rstrip())
            raise EnginesError(
                f"{name} ended or gave no answer within {READY_SECONDS} s; its container is {container.name}"
            )

    def _row(self, name: str) -> dict[str, str | int | None]:
        container = self._running(name)
        up = container and self.recipes[name].is_ready(container, self._port(name))
        return {
            "engine": name,
            "state": "up" if up else "not answering" if container else "down",
            "pid": container.attrs["State"]["Pid"] if container else None,
            "port": self.fleet.state.container_ports.get(name),
            "server": container.labels[IMAGE_LABEL] if container else None,
            "log": f"container {self._name(name)}",
        }

    def _name(self, name: str) -> str:
        """An engine may serve several clones, and one clone may keep its engines in several folders."""
        mark = hashlib.sha256(os.fsencode(self.fleet.places.home)).hexdigest()[:12]
        return f"toolscript-{mark}-{name}"

    def _port(self, name: str) -> int:
        return self.fleet.state.container_ports[name]


def _image(name: str) -> str:
    named: str = yaml.safe_load(COMPOSE_FILE.read_text())["services"][name]["image"]
    return os.environ.get(f"TOOLSCRIPT_TEST_{name.upper()}_IMAGE") or named


def _qdrant(places: Places) -> Recipe:
    environment = {
        "QDRANT__TELEMETRY_DISABLED": "true",
        "QDRANT__SERVICE__ENABLE_STATIC_CONTENT": "false",
    }
    return Recipe((6333, 6334), environment, lambda _container, port: QdrantNode(places).is_ready(port))


def _postgres(places: Places) -> Recipe:
    environment = {
        # The superuser's. It gets in through the container's own socket, so nobody has to know this.
        "POSTGRES_PASSWORD": secrets.token_hex(24),
        "POSTGRES_INITDB_ARGS": "--data-checksums --encoding=UTF8 --locale=C.UTF-8",
    }
    # All addresses of the container; of this machine it is published on one alone.
    settings = SETTINGS | {"listen_addresses": "*"}
    command = ["postgres", *(part for key, value in settings.items() for part in ("-c", f"{key}={value}"))]

    def is_ready(container: Container, _port: int) -> bool:
        # Over TCP: while the image sets itself up, a temporary server answers on the socket only.
        answer = container.exec_run(["pg_isready", "-q", "-h", "127.0.0.1"])
        return bool(answer.exit_code == 0)

    def finish(container: Container, _port: int) -> None:
        script = {"SET_UP": SET_UP.format(password=Postgres(places).password())}
        shell = 'printf %s "$SET_UP" | psql -qX -U postgres -d postgres'
        answer = container.exec_run(["sh", "-c", shell], environment=script)
        if answer.exit_code != 0:
            raise EnginesError(f"PostgreSQL made no role or database: {answer.output.decode(errors='replace')}")

    # Parallel queries share memory beyond Docker's 64 MB.
    return Recipe((5432,), environment, is_ready, finish, command, {"shm_size": "256m"})


def _mongo(places: Places) -> Recipe:
    password = stored_password(places.home / f"mongo-{MONGO_ADMIN}.password")
    environment = {"MONGO_INITDB_ROOT_USERNAME": MONGO_ADMIN, "MONGO_INITDB_ROOT_PASSWORD": password}

    def finish(_container: Container, port: int) -> None:
        url = f"mongodb://{MONGO_ADMIN}:{password}@127.0.0.1:{port}/?authSource=admin"
        try:
            with MongoClient[dict[str, Any]](url) as client:
                known = {user["user"] for user in client.admin.command("usersInfo")["users"]}
                for user in mongo_users.ROLES.keys() - known:
                    roles = [{"role": mongo_users.ROLES[user], "db": "admin"}]
                    client.admin.command("createUser", user, pwd=mongo_users.password(places, user), roles=roles)
        except PyMongoError as problem:
            raise EnginesError(f"MongoDB made no users: {problem}") from None

    command = ["--wiredTigerCacheSizeGB", "0.5"]
    return Recipe((27017,), environment, lambda _container, port: Mongo(places).is_ready(port), finish, command)


@contextmanager
def _translated_errors() -> Iterator[None]:
    """A lost connection is an error of the HTTP library, not of the package `docker`."""
    try:
        yield
    except (DockerException, RequestException) as problem:
        raise EnginesError(f"the container engine says: {problem}") from None
