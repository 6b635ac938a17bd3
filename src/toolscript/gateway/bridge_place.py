"""Where `toolscript mcp` finds its gateway, and what it says to one of its folder.

It reads the few settings that it goes by itself: the classes of all settings, and what reads
config files, take longer to import than a client waits. Those are loaded where a folder has a config file.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from toolscript.core.errors import SetupError, Unavailable
from toolscript.gateway.bridge_http import Address
from toolscript.gateway.record import API, RUN, RunningGateway, is_replaced, listens, running_in, token_at

if TYPE_CHECKING:
    from subprocess import Popen

    from toolscript.gateway.workspace import Survey

FILE_NAME = ".toolscript.json"
PREFIX = "/w/"
END_SECONDS, LOOK_SECONDS = 20.0, 0.02
NO_GATEWAY = "the gateway has ended, and no other runs"
HINT = "ask the user to start it again"
_FLAGS = {"--direct": "direct", "--alone": "alone"}
_VALUES = {"--config": "config", "--data-dir": "data_dir", "--model": "search_model"}
_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class Place(NamedTuple):
    """A gateway, and the workspace in it. `workspace` is what a gateway is told that does not know it yet."""

    address: Address
    token: str
    workspace: Mapping[str, object] | None = None
    note: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.address.place, self.address.path


class BridgeSettings:
    """The settings of `toolscript mcp`: option beats environment. Raises ValueError for one that cannot be used.

    `chosen` are those of the gateway that were set explicitly, `given` the options.
    """

    def __init__(self, given: Mapping[str, str], environment: Mapping[str, str]) -> None:
        def read(name: str) -> str:
            return environment.get(f"TOOLSCRIPT_{name.upper()}", "").strip()

        self.given = {name: value for name, value in given.items() if value}
        self.direct = bool(given.get("direct"))
        self.alone = bool(given.get("alone")) or _is_set(read("gateway_alone"))
        self.starts = _is_set(read("gateway_on_demand") or "true")
        self.url, self.token = read("gateway_url"), read("gateway_token")
        self.data_folder = Path(given.get("data_dir") or read("data_dir") or "~/.toolscript").expanduser()
        self.config = given.get("config") or read("config")
        self.names_config = bool(given.get("config"))
        self.split = _is_set(read("gateway_split_calls"))
        self.search_type = read("search_type").lower()
        chosen: dict[str, object] = {
            "search_model": given.get("search_model") or read("search_model"),
            "search_alpha": float(text) if (text := read("search_alpha")) else None,
            "search_device": read("search_device").lower(),
            "search_no_cache": _is_set(text) if (text := read("search_no_cache")) else None,
        }
        self.chosen = {name: value for name, value in chosen.items() if value not in ("", None)}
        self.environment = environment


def parse_options(words: Sequence[str]) -> dict[str, str] | None:
    """Return the options of `toolscript mcp` by name; None where the command line has to say what is wrong."""
    given: dict[str, str] = {}
    left = list(words)
    while left:
        option, equals, value = left.pop(0).partition("=")
        if option in _FLAGS and not equals:
            given[_FLAGS[option]] = option
        elif option in _VALUES and (equals or left):
            given[_VALUES[option]] = value if equals else left.pop(0)
        else:
            return None
    return given


def _is_set(text: str) -> bool:
    if text.lower() not in ("", *_WORDS):
        raise ValueError(text)
    return _WORDS.get(text.lower(), False)


class Finder:
    """Finds the gateway of this user and data folder, or starts it; where none can be joined, one of its own."""

    def __init__(self, settings: BridgeSettings) -> None:
        self._settings = settings
        self._run = settings.data_folder / RUN
        self._survey: Survey | None = None
        self._running: RunningGateway | None = None
        self._was_joined = False
        self._is_alone = settings.alone
        self._own: Popen[bytes] | None = None
        try:
            self._folder = Path.cwd()
        except OSError:
            # It was removed.
            self._folder = Path.home().absolute()

    def is_ready(self) -> bool:
        """Return whether a gateway runs that answers at once."""
        running = running_in(self._run)
        return bool(self._settings.url) or (running is not None and running.ready and not self._is_alone)

    def find(self, *, starts: bool) -> Place | None:
        """Return the place of the gateway that runs now; without `starts`, None where there is none."""
        if not self._settings.url:
            found = None if self._is_alone else self._joined(starts=starts)
            if found is None and not starts:
                return None
            if found is None and self._was_joined:
                raise Unavailable(NO_GATEWAY, hint=HINT)
            self._running = found or self._alone()
            self._was_joined = found is not None
        return self.place()

    def place(self) -> Place:
        """Return the place in the gateway that was found: workspaces change with their files."""
        running, settings = self._running, self._settings
        if running is None:
            return Place(Address(settings.url), token_at(self._run, settings.url) or settings.token)
        # A shell has the token of a client, from `gateway env`; this process has the person's own.
        token = running.token or settings.token
        if self._own or self._is_usual(running):
            return Place(Address(running.url), token)
        surveyed = self._surveyed().look_for(running.workspace)
        if surveyed.workspace.id == running.workspace:
            return Place(Address(running.url), token, note=surveyed.note)
        url = f"{running.url}{PREFIX}{surveyed.workspace.id}"
        return Place(Address(url), token, surveyed.workspace.to_json(), surveyed.note)

    def is_current(self) -> bool:
        """Return whether the gateway that was found is still the recorded one: its port may be another's now."""
        if self._running is None or self._own:
            return True
        running = running_in(self._run)
        return running is not None and (running.url, running.token) == (self._running.url, self._running.token)

    def close(self) -> None:
        """End the gateway of this process, if there is one: it ends with its input."""
        if self._own is not None and self._own.stdin is not None:
            self._own.stdin.close()
            self._own.wait()

    def _joined(self, *, starts: bool) -> RunningGateway | None:
        """Return a gateway that runs, or was started; None: work alone."""
        may_start = starts and self._settings.starts
        running = self._after_the_end()
        if may_start and (running is None or is_replaced(running)):
            running = self._launched(replacing=running) or running
        if running is None:
            return None
        if not self._was_joined and (why := self._why_unusable(running)):
            _say(f"warning: the gateway at {running.url} is not used: {why}")
            self._is_alone = True
            return None
        return running

    def _after_the_end(self) -> RunningGateway | None:
        """Return the gateway that runs. One that is ending no longer listens, and has its record for a moment."""
        deadline = time.monotonic() + END_SECONDS
        while (running := running_in(self._run)) is not None and not listens(running.url):
            if time.monotonic() > deadline:
                return None
            time.sleep(LOOK_SECONDS)
        return running

    def _launched(self, *, replacing: RunningGateway | None) -> RunningGateway | None:
        folder = self._settings.data_folder
        existing = next((path for path in (folder, *folder.parents) if os.access(path, os.F_OK)), folder)
        if not existing.is_dir() or not os.access(existing, os.W_OK):
            return None
        from toolscript.gateway.launch import launch, words_of

        try:
            return launch(folder, words_of(self._settings.given), self._settings.environment, replacing=replacing)
        except SetupError as error:
            _say(f"warning: {error.message} ({error.hint})")
            return None

    def _why_unusable(self, running: RunningGateway) -> str:
        if running.api != API:
            return f"it is version {running.version}, which this version cannot use"
        for name, wanted in self._settings.chosen.items():
            if running.choices.get(name) != wanted:
                return f"it has {name} {running.choices.get(name)}, and this command has {wanted}"
        return ""

    def _alone(self) -> RunningGateway:
        """Start a gateway that ends with this process, and that no other one finds."""
        from subprocess import PIPE, Popen

        if self._own is not None and self._own.poll() is None and self._running is not None:
            return self._running
        self._is_alone = True
        given = self._settings.given
        options = [word for option, name in _VALUES.items() if name in given for word in (option, given[name])]
        command = [sys.executable, "-P", "-m", "toolscript", "gateway", "start", "--private", *options]
        self._own = Popen(command, stdin=PIPE, stdout=PIPE)  # noqa: S603
        assert self._own.stdout is not None  # noqa: S101
        line = self._own.stdout.readline()
        if not line:
            raise Unavailable("no gateway could be started", hint=HINT)
        said = json.loads(line)
        return RunningGateway(self._own.pid, said["url"], "", token=said["token"])

    def _is_usual(self, running: RunningGateway) -> bool:
        """Return whether nothing but the user's own file counts here, and the gateway serves that anyway."""
        if self._settings.config or self._survey is not None or not running.workspace:
            return False
        home, start = Path.home().absolute(), self._folder
        for folder in (start, *start.parents):
            if folder == home:
                break
            if os.path.lexists(folder / FILE_NAME):
                return False
        return running.workspace == _id_of(home / FILE_NAME)

    def _surveyed(self) -> "Survey":
        if self._survey is None:
            from toolscript.gateway.config.read import ConfigPlace
            from toolscript.gateway.workspace import Survey

            settings = self._settings
            by_person = settings.names_config or not settings.config
            self._survey = Survey(ConfigPlace(settings.config, by_person=by_person), dict(settings.environment))
        return self._survey


def _id_of(own: Path) -> str:
    """Return the id of a workspace of one file, as `Workspace` makes it."""
    import hashlib

    parts: list[object] = [[str(own)], "", []]
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
