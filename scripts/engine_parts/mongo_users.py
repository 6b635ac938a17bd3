"""Who may do what in the private MongoDB: one user reads all databases, one reads and writes them.

A server that asks for passwords lets nobody make the first user, so they are made while it does not ask yet.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from . import mongo_wire
from .messages import EnginesError
from .passwords import kept_password
from .places import Places

READER, WRITER = "toolscript_reader", "toolscript_writer"
# Tests make databases under names of their own; people outside give roles on one (deploy/mongo/users.js).
ROLES: Mapping[str, str] = {READER: "readAnyDatabase", WRITER: "readWriteAnyDatabase"}
MADE = "toolscript-users"


def are_made(places: Places, data: Path) -> bool:
    """With the passwords we know: a mark lies with the data, which may be older than users are."""
    mark = data / MADE
    return mark.exists() and mark.read_text() == _mark(places)


def make(places: Places, data: Path, port: int) -> None:
    for user, role in ROLES.items():
        mongo_wire.ask(port, {"dropUser": user})
        roles = [{"role": role, "db": "admin"}]
        answer = mongo_wire.ask(port, {"createUser": user, "pwd": _password(places, user), "roles": roles})
        if not mongo_wire.is_fine(answer):
            raise EnginesError(f"MongoDB did not make the user {user}; see {places.log('mongo')}")
    (data / MADE).write_text(_mark(places))


def url(places: Places, user: str, port: int) -> str:
    return f"mongodb://{user}:{_password(places, user)}@127.0.0.1:{port}/?authSource=admin"


def _password(places: Places, user: str) -> str:
    return kept_password(places.home / f"mongo-{user}.password")


def _mark(places: Places) -> str:
    known = "\n".join(f"{user} {role} {_password(places, user)}" for user, role in ROLES.items())
    return hashlib.sha256(known.encode()).hexdigest()
