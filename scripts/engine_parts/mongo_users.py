"""Users of the private MongoDB: one reads all databases, one reads and writes them.

With authentication on, the first user cannot be created, so they are created before it is switched on.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from . import mongo_wire
from .messages import EnginesError
from .passwords import stored_password
from .places import Places

READER, WRITER = "toolscript_reader", "toolscript_writer"
# Tests create databases of any name; a deployment grants roles on one (deploy/mongo/users.js).
ROLES: Mapping[str, str] = {READER: "readAnyDatabase", WRITER: "readWriteAnyDatabase"}
MADE = "toolscript-users"


def have_been_created(places: Places, data: Path) -> bool:
    """Return whether the users exist with the stored passwords, by a mark file in the data folder."""
    mark = data / MADE
    return mark.exists() and mark.read_text() == _mark(places)


def make(places: Places, data: Path, port: int) -> None:
    for user, role in ROLES.items():
        mongo_wire.run_command(port, {"dropUser": user})
        roles = [{"role": role, "db": "admin"}]
        answer = mongo_wire.run_command(port, {"createUser": user, "pwd": password(places, user), "roles": roles})
        if not mongo_wire.is_fine(answer):
            raise EnginesError(f"MongoDB did not make the user {user}; see {places.log('mongo')}")
    (data / MADE).write_text(_mark(places))


def url(places: Places, user: str, port: int) -> str:
    return f"mongodb://{user}:{password(places, user)}@127.0.0.1:{port}/?authSource=admin"


def password(places: Places, user: str) -> str:
    return stored_password(places.home / f"mongo-{user}.password")


def _mark(places: Places) -> str:
    credentials = "\n".join(f"{user} {role} {password(places, user)}" for user, role in ROLES.items())
    return hashlib.sha256(credentials.encode()).hexdigest()
