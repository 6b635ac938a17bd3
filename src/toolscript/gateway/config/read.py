"""Config files: discovery, and the merged config.

The user's file is `~/.toolscript.json`. The project's is the nearest `.toolscript.json`, from the working folder
upwards, up to but not including the home folder, or else up to the root of the file system. A server of the
project replaces the user's server of the same name as a whole. A file that is named explicitly is the only one.

A file of another user is never read. Of an untrusted file only the server names are read.
"""

import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from toolscript.core.errors import ConfigInvalid
from toolscript.core.mcp_client.model import ServerSpec, ServerState, ServerStatus, Transport
from toolscript.core.own_files import is_own
from toolscript.gateway.config.entries import PASSTHROUGH, inherited, read_entry
from toolscript.gateway.config.jsonc import Document, parse, read_text
from toolscript.gateway.config.problems import Problem, Severity, nearest_name
from toolscript.gateway.config.trust import Trust, TrustState, TrustStore, how_to_trust, trusts_all
from toolscript.gateway.config.variables import FindSecret, no_secret

FILE_NAME = ".toolscript.json"
SECTIONS = ("servers", "mcpServers")
CURATION, RULES = "curation", "rules"
KNOWN = frozenset({"$schema", "inputs", PASSTHROUGH, CURATION, RULES, *SECTIONS})
MAX_NAMED = 100
MAX_UNTRUSTED = 1 << 20

# How alike a key must be to one that it was meant to be: `rule`, `Rules`.
_MEANT = 0.85
_EXPECTED = '{"mcpServers": {"name": {"command": ...}}}'

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Config:
    """`servers` by name, `files` that were read, and `problems` that exclude a server or are only warnings.

    `used` are the files that name a server or have a curation or rules, `untrusted` those that would name a server
    if they were trusted. `curation` and `rules` have what each file says there, not validated, with the file that
    says it; `named` are further files that config files name, whether they exist or not.
    """

    servers: tuple[ServerSpec, ...] = ()
    files: tuple[Path, ...] = ()
    problems: tuple[Problem, ...] = ()
    used: frozenset[Path] = frozenset()
    untrusted: frozenset[Path] = frozenset()
    curation: tuple[tuple[Path, object], ...] = ()
    named: tuple[Path, ...] = ()
    rules: tuple["RulesOfFile", ...] = ()


@dataclass(frozen=True)
class RulesOfFile:
    """The `rules` of a file, not validated. `is_own`: the file is the user's, whose rules may also allow.

    `problem`: why they cannot be read, as they are not under `rules`, or the file is malformed.
    """

    file: Path
    raw: object
    is_own: bool = False
    problem: str = ""


def config_paths(home: Path, start: Path, explicit: Path | None = None) -> list[Path]:
    """Return the files to read; the later one wins. Missing files are included, so that they can be watched."""
    if explicit is not None:
        path = explicit.absolute()
        if read_text(path, only_ours=True) is None:
            raise ConfigInvalid(
                f"there is no config file {path}",
                hint="give the path of one, or leave --config out to use the usual ones",
            )
        return [path]
    home, start = home.absolute(), start.absolute()
    user = home / FILE_NAME
    if start.resolve() == home.resolve():
        return [user]
    return [user, next(_project_files(home, start), start / FILE_NAME)]


def read_config(
    paths: Sequence[Path],
    environment: Mapping[str, str],
    trust: Trust = trusts_all,
    environment_of: Callable[[Path], Mapping[str, str]] | None = None,
    find_secret: FindSecret = no_secret,
) -> Config:
    """Return the merged config. Missing files are skipped; an invalid server does not affect the others.

    `environment_of` a file is used for it instead of the environment. A file that is not trusted gets no secret.
    """
    written = _Written()
    for path in dict.fromkeys(path.absolute() for path in paths):
        written.add(path, trust)
    servers: list[ServerSpec] = []
    problems = [*written.problems, *written.waiting()]
    for name, (raw, path) in sorted(written.entries.items()):
        seen = environment if environment_of is None else environment_of(path)
        spec, entry_problems = read_entry(name, raw, path, seen, find_secret)
        servers += [replace(spec, file=str(path))] if spec else []
        problems += entry_problems
    return Config(
        tuple(servers),
        tuple(written.files),
        tuple(problems),
        frozenset(path for _, path in written.entries.values()) | written.curating,
        frozenset(written.untrusted),
        tuple(written.curation),
        tuple(written.named),
        tuple(written.rules),
    )


@dataclass
class _Written:
    """Raw content of the files, before validation."""

    entries: dict[str, tuple[object, Path]] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    untrusted: dict[Path, tuple[TrustState, Sequence[str]]] = field(default_factory=dict)
    curation: list[tuple[Path, object]] = field(default_factory=list)
    curating: set[Path] = field(default_factory=set)
    named: list[Path] = field(default_factory=list)
    rules: list[RulesOfFile] = field(default_factory=list)

    def add(self, path: Path, trust: Trust) -> None:
        try:
            # Read once: the trusted content is the used one, even if the file changes meanwhile.
            text = read_text(path, only_ours=True)
        except ConfigInvalid as error:
            if trust(path, "") is TrustState.TRUSTED:
                raise
            self.problems.append(Problem("", path, error.message, "it is not used", Severity.WARNING))
            return
        if text is None:
            return
        if (state := trust(path, text)) is not TrustState.TRUSTED:
            self._add_untrusted(path, text, state)
            return
        document = parse(text, path)
        self.files.append(path)
        for name, raw in server_entries(document, path).items():
            self.entries[name] = shared_passthrough(raw, document), path
        self.problems += _problems_of_file(document, path)
        self._add_curation(document, path, is_own=trust(path, "") is TrustState.TRUSTED)
        if rules := _rules_in(document, path):
            self.curating.add(path)
            self.rules += rules

    def _add_curation(self, document: Document, path: Path, *, is_own: bool) -> None:
        raw = document.value.get(CURATION) if isinstance(document.value, dict) else None
        if raw is None:
            return
        self.curating.add(path)
        if not isinstance(raw, str):
            self.curation.append((path, raw))
        elif is_own:
            self._add_named_curation(named_file(raw, path))
        else:
            # Trust applies to the content of one file, and not to that of another one.
            fix = "put the rules into it"
            problem = Problem("", path, f"the {CURATION} of a project names a file", fix, Severity.WARNING)
            self.problems.append(problem)

    def _add_named_curation(self, file: Path) -> None:
        self.named.append(file)
        text = read_text(file, only_ours=True)
        if text is None:
            fix = f"create it, or correct {CURATION} in the config file"
            self.problems.append(Problem("", file, "there is no such file", fix, Severity.WARNING))
        else:
            self.curation.append((file, parse(text, file).value))

    def _add_untrusted(self, path: Path, text: str, state: TrustState) -> None:
        try:
            if len(text) > MAX_UNTRUSTED:
                raise ConfigInvalid(f"larger than {MAX_UNTRUSTED >> 20} MiB", hint="it is not used")
            names = [nearest_name(name[:MAX_NAMED]) for name in server_entries(parse(text, path), path)]
        except ConfigInvalid as error:
            self.problems.append(Problem("", path, error.message, error.hint, Severity.WARNING))
            return
        if names:
            self.untrusted[path] = state, names[:MAX_NAMED]

    def waiting(self) -> Iterator[Problem]:
        """Yield a problem for each server of an untrusted file."""
        for path, (state, names) in self.untrusted.items():
            why = "changed since it was trusted" if state is TrustState.CHANGED else "not trusted"
            for name in names:
                if name not in self.entries:
                    yield Problem(name, path, f"its config file is {why}", how_to_trust(path))


def named_file(written: str, config: Path) -> Path:
    """Return the file that a config file names: relative to its folder, or in the home folder with `~/`."""
    return config.parent / Path(written).expanduser()


def shared_passthrough(raw: object, document: Document) -> object:
    """Merge a file's `envPassthrough` into the entry of a server with a command."""
    shared = document.value.get(PASSTHROUGH) if isinstance(document.value, dict) else None
    if shared is None or not isinstance(raw, dict) or not raw.get("command"):
        return raw
    own = raw.get(PASSTHROUGH) or []
    together = [*shared, *own] if isinstance(shared, list) and isinstance(own, list) else shared
    return {**raw, PASSTHROUGH: together}


def server_entries(document: Document, path: Path) -> dict[str, object]:
    """Return the raw entries of a file by name; of two sections `mcpServers` wins."""
    if not isinstance(document.value, dict):
        raise ConfigInvalid(f"{path} is not a JSON object", hint=f"write {_EXPECTED}")
    entries: dict[str, object] = {}
    for section in SECTIONS:
        value = document.value.get(section)
        if value is not None and not isinstance(value, dict):
            raise ConfigInvalid(f"{section} in {path} is not an object", hint=f"write {_EXPECTED}")
        entries |= value or {}
    return entries


def _problems_of_file(document: Document, path: Path) -> Iterator[Problem]:
    keys = set(document.value) if isinstance(document.value, dict) else set()
    if keys - KNOWN and not keys & set(SECTIONS):
        yield Problem("", path, "names no servers", f"put them under mcpServers: {_EXPECTED}", Severity.WARNING)
    for name in sorted(set(document.repeated) & {*server_entries(document, path), *SECTIONS, RULES}):
        server, subject = ("", f"{name} is") if name in {*SECTIONS, RULES} else (name, "its name may be")
        message = f"{subject} written twice; the last one counts"
        yield Problem(server, path, message, "make them one", Severity.WARNING)


def _rules_in(document: Document, path: Path) -> list[RulesOfFile]:
    """Return the rules, after a mistake for each key that was meant to be theirs: it must let no call through."""
    written = document.value if isinstance(document.value, dict) else {}
    unknown = [key for key in written if key not in KNOWN]
    return [
        *(RulesOfFile(path, None, problem=f"{key[:40]!a} is not {RULES}") for key in _meant_as_rules(unknown)),
        *([RulesOfFile(path, written[RULES])] if RULES in written else []),
    ]


def _meant_as_rules(keys: Sequence[str]) -> list[str]:
    if not keys:
        return []
    from difflib import get_close_matches

    return [key for key in keys if get_close_matches(key.strip().casefold()[:40], [RULES], 1, _MEANT)]


def _project_files(home: Path, start: Path) -> Iterator[Path]:
    real_home = home.resolve()
    for folder in (start, *start.parents):
        if folder.resolve() == real_home:
            return
        path = folder / FILE_NAME
        if _is_ours(path):
            yield path


def _is_ours(path: Path) -> bool:
    try:
        return path.is_file() and is_own(path.lstat()) and is_own(path.stat())
    except OSError:
        return False


@dataclass(frozen=True)
class ConfigPlace:
    """`named`: an explicit config file. `by_person`: the user named it on the command line.

    A gateway reads the files of its clients: `files`, which a client found in its folder, and `variables` of the
    client's environment, for all files but the user's own. What a client did not send is not set for its files.
    Without `find_secret` the servers that need a secret are left out.
    """

    named: str = ""
    by_person: bool = True
    files: tuple[Path, ...] = ()
    variables: Mapping[str, str] | None = field(default=None, repr=False)
    find_secret: FindSecret = field(default=no_secret, repr=False, compare=False)

    @property
    def store(self) -> TrustStore:
        return TrustStore(Path.home())

    @property
    def own_file(self) -> Path:
        return Path.home().absolute() / FILE_NAME

    def paths(self) -> list[Path]:
        """Return the user's and the project's file, or the explicit one."""
        named = Path(self.named).expanduser() if self.named else None
        paths = [*self.files] or config_paths(Path.home(), Path.cwd(), named)
        # The user's own file has one name, however a client spells it.
        return [self.own_file if _is_same(path, self.own_file) else path for path in paths]

    def watched(self) -> list[Path]:
        """Return the files to watch, trust records included: trusting a file changes the config."""
        paths = [*self.paths(), *self._only_for_rules()]
        return [*paths, *(self.store.file_of(path) for path in paths if not self.is_own(path))]

    def is_own(self, path: Path) -> bool:
        """Return whether a file needs no trust: the user's own, or one they name, but not a project's."""
        return bool(self.named and self.by_person) or _is_users(path)

    def trust(self, path: Path, text: str) -> TrustState:
        return TrustState.TRUSTED if self.is_own(path) else self.store.state_of(path, text)

    def read(self, environment: Mapping[str, str]) -> Config:
        """Read the files. The rules of the user's own file apply whatever other file is named."""
        config = self._read(environment)
        own, problems = self._rules_of_own_file(config)
        rules = [*own, *config.rules]
        return replace(
            config,
            rules=tuple(replace(of_file, is_own=_is_users(of_file.file)) for of_file in rules),
            problems=(*config.problems, *problems),
        )

    def _rules_of_own_file(self, config: Config) -> tuple[list[RulesOfFile], list[Problem]]:
        """Return its rules where it is not one of the files that were read, or others may write it."""
        path = self.own_file
        if any(_is_same(file, path) for file in config.files):
            return [], []
        if _is_users(path):
            text = read_text(path, only_ours=True)
            return ([] if text is None else _rules_in(parse(text, path), path)), []
        try:
            text = read_text(path, only_ours=True)
            rules = [] if text is None else _rules_in(parse(text, path), path)
        except ConfigInvalid as error:
            rules = [RulesOfFile(path, None, problem=error.message)]
        what = "other users may write it, so its rules can only make calls stricter"
        fix = f"take that right away: chmod o-w {path}"
        return rules, [Problem("", path, what, fix, Severity.WARNING)] if rules else []

    def _only_for_rules(self) -> list[Path]:
        own = Path.home() / FILE_NAME
        return [] if any(_is_same(path, own) for path in self.paths()) else [own]

    def _read(self, environment: Mapping[str, str]) -> Config:
        variables = self.variables
        if variables is None:
            return read_config(self.paths(), environment, self.trust, find_secret=self.find_secret)
        of_client = {**inherited(environment), **variables}
        own = self.own_file

        def environment_of(path: Path) -> Mapping[str, str]:
            return environment if _is_same(path, own) else of_client

        return read_config(self.paths(), environment, self.trust, environment_of, self.find_secret)

    def read_and_warn(self, environment: Mapping[str, str]) -> Config:
        """Read the config and log its warnings; `left_out` returns the errors."""
        config = self.read(environment)
        for problem in config.problems:
            if problem.severity is Severity.WARNING:
                logger.warning(str(problem))
        return config


def _is_users(path: Path) -> bool:
    """Return whether a file is the user's own one, which nobody else may write."""
    try:
        own = path.parent.samefile(Path.home()) and path.name == FILE_NAME
        # A system without file owners has no world-writable bit, either.
        return own and not (hasattr(os, "getuid") and path.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return path == Path.home().absolute() / FILE_NAME


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return path == other.absolute()


def left_out(config: Config) -> list[ServerState]:
    """Return the servers whose entry is invalid, as failed."""
    problems = [problem for problem in config.problems if problem.severity is Severity.ERROR and problem.server]
    return [
        ServerState(problem.server, Transport.STDIO, ServerStatus.FAILED, f"{problem.message}; {problem.fix}")
        for problem in problems
    ]
