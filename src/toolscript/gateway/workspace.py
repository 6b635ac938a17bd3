"""The config files of a client, which it names to the gateway that serves it.

The user's own servers are those of every client, started once, with the environment of the gateway. Those of a
project belong to its clients alone. Their variables have the values that the client's environment has.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from toolscript.core.errors import ConfigInvalid, InvalidRequest
from toolscript.gateway.config.entries import PASSTHROUGH
from toolscript.gateway.config.jsonc import parse, read_text
from toolscript.gateway.config.read import Config, ConfigPlace, server_entries, shared_passthrough
from toolscript.gateway.config.trust import TrustState, TrustStore, how_to_trust
from toolscript.gateway.config.variables import variables_in

# Below this path of a gateway its routes are those of one workspace.
PREFIX = "/w/"
WORKSPACES_PATH = "/workspaces"
# In the details of an error: the id that the gateway does not know.
UNKNOWN_WORKSPACE = "workspace"
MAX_FILES, MAX_VARIABLES = 8, 1_000
_SEARCH_PATH = "PATH"

Json = dict[str, Any]
_Stamp = tuple[tuple[str, int, int], ...]


class Workspace:
    """`named`: an explicit config file; else `files` are the user's own and the project's, if it names a server.

    `search_path` is the `PATH` of the client. Clients that differ in it have one workspace; the first decides. No
    dataclass: defining one takes longer than a command's request.
    """

    def __init__(
        self,
        files: tuple[str, ...],
        named: str = "",
        by_person: bool = True,
        variables: Mapping[str, str] | None = None,
        search_path: str = "",
    ) -> None:
        self.files = files
        self.named = named
        self.by_person = by_person
        self.variables = variables or {}
        self.search_path = search_path

    @property
    def id(self) -> str:
        # Not by whom it was named: the gateway asks the trust records, and never believes a client.
        parts = [self.files, self.named, sorted(self.variables.items())]
        return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]

    @property
    def place(self) -> ConfigPlace:
        path = {_SEARCH_PATH: self.search_path} if self.search_path else {}
        files = () if self.named else tuple(Path(name) for name in self.files)
        return ConfigPlace(self.named, self.by_person, files, {**path, **self.variables})

    def to_json(self) -> Json:
        return {
            "files": list(self.files),
            "named": self.named,
            "variables": dict(self.variables),
            "search_path": self.search_path,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Workspace":
        files, variables = data.get("files"), data.get("variables", {})
        texts = [data.get("named", ""), data.get("search_path", "")]
        if isinstance(files, list) and isinstance(variables, dict):
            texts += [*files, *variables, *variables.values()]
            sound = 0 < len(files) <= MAX_FILES and len(variables) <= MAX_VARIABLES
            if sound and all(isinstance(text, str) for text in texts) and all(map(_is_plain, files)):
                named = texts[0]
                if not named or files == [named]:
                    # Whatever a client says: a file that it names starts nothing unless its user trusts it.
                    return cls(tuple(files), named, by_person=False, variables=variables, search_path=texts[1])
        raise InvalidRequest("this is not a workspace", hint="name config files by their whole paths: `files`")


def _is_plain(path: str) -> bool:
    """Return whether a path is whole and says where it leads, so that files can be compared by their paths."""
    return Path(path).is_absolute() and os.path.normpath(path) == path


def workspace_of(place: ConfigPlace, environment: Mapping[str, str], config: Config | None = None) -> Workspace:
    """Return the workspace of a place. A project's file belongs to it if it is trusted and names a server or rule.

    Without a config, because a file is malformed, all files that exist do.
    """
    own, *projects = place.paths()
    used = [path for path in projects if (path.exists() if config is None else path in config.used)]
    needed = {_SEARCH_PATH: environment.get(_SEARCH_PATH, "")}
    if place.named:
        variables = dict(_variables([own], environment))
        return Workspace((str(own),), str(own), place.by_person, variables, needed[_SEARCH_PATH])
    files = tuple(str(path) for path in (own, *used))
    # All projects share the user's own servers, whatever the client's environment.
    search_path = needed[_SEARCH_PATH] if used else ""
    return Workspace(files, variables=dict(_variables(used, environment)), search_path=search_path)


def _variables(files: list[Path], environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the variables of the environment that the files reference or pass on."""
    for file in files:
        try:
            text = read_text(file, only_ours=True)
            document = parse(text or "{}", file)
            entries = [shared_passthrough(raw, document) for raw in server_entries(document, file).values()]
        except ConfigInvalid:
            continue
        referenced = variables_in(entries)
        patterns = [name for entry in entries for name in _passed_on(entry)]
        for name, value in environment.items():
            if name in referenced or any(fnmatchcase(name, pattern) for pattern in patterns):
                yield name, value


def _passed_on(entry: object) -> list[str]:
    names = entry.get(PASSTHROUGH) if isinstance(entry, Mapping) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


class Surveyed:
    """`note` names servers that are left out because their file is not trusted."""

    def __init__(self, workspace: Workspace, note: str = "") -> None:
        self.workspace = workspace
        self.note = note


class Survey:
    """What the config files of a folder say; they are read again when one of them has changed."""

    def __init__(self, place: ConfigPlace, environment: Mapping[str, str]) -> None:
        self._place = place
        self._environment = environment
        self._stamp: _Stamp | None = None
        self._surveyed: Surveyed | None = None
        self._trusted: Surveyed | None = None

    def look(self) -> Surveyed:
        """Return what the files say; what they said before, if the folder is gone or a file cannot be read."""
        try:
            stamp = tuple(_stamps(self._place))
            if self._surveyed is None or stamp != self._stamp:
                self._surveyed = self._look()
                self._stamp = stamp
        except (ConfigInvalid, OSError):
            if self._surveyed is None:
                raise
        return self._surveyed

    def look_for(self, served: str) -> Surveyed:
        """As `look`, for a gateway that serves the workspace of this id to every client.

        Another one that the user named is trusted with the content of now: the gateway believes records alone.
        """
        surveyed = self.look()
        workspace = surveyed.workspace
        if workspace.named and workspace.by_person and workspace.id != served and surveyed is not self._trusted:
            _trust(Path(workspace.named))
            self._trusted = surveyed
        return surveyed

    def _look(self) -> Surveyed:
        try:
            config = self._place.read(self._environment)
        except ConfigInvalid:
            # A running gateway keeps the config that it read last.
            return Surveyed(workspace_of(self._place, self._environment))
        waiting = [
            f"not searched: the servers of {path}; {how_to_trust(path)}" for path in sorted(config.untrusted)
        ]
        return Surveyed(workspace_of(self._place, self._environment, config), "; ".join(waiting))


def _trust(file: Path) -> None:
    text = read_text(file, only_ours=True)
    store = TrustStore(Path.home())
    if text is not None and store.state_of(file, text) is not TrustState.TRUSTED:
        store.decide(file, text, trusted=True)


def _stamps(place: ConfigPlace) -> Iterator[tuple[str, int, int]]:
    for path in place.watched():
        try:
            about = path.stat()
            yield str(path), about.st_mtime_ns, about.st_ino
        except OSError:
            yield str(path), 0, 0
