"""Variables in the texts of a config file.

`${NAME}`               the variable of the environment; an error when it is not set
`${NAME:-text}`         the same, or the text when it is not set or empty; the text may hold variables itself
`${env:NAME}`           the same as `${NAME}`, as VS Code and Cursor write it
`${workspaceFolder}`    the folder of the config file; `${workspaceFolderBasename}` its name
`${userHome}`           the home folder
`${pathSeparator}`      the separator of paths, also `${/}`
`${keyring:NAME}`       the secret of that name, which `toolscript secrets set NAME` keeps; with `:-text` as well
`${input:id}`           a prompt of VS Code; there is no prompt here, so it is an error
`$${`                   the two characters `${`

A `$` without a brace is a `$`. Values of variables are not expanded again.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolscript.core.errors import SetupError
from toolscript.gateway.config.problems import Finding

MAX_DEPTH = 20

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_()]*")
NAME_RULE = "1 to 64 letters, digits, `_`, `.` or `-`, and a letter or `_` first"

_KEYRING = "keyring:"
_SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_INPUT = re.compile(r"input:([A-Za-z0-9_.-]{1,64})")
_BRACE = re.compile(r"[{}]")
_OPENED = re.compile(r"\$\{([^{}$]*)")
_PREDEFINED = frozenset({"workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator"})


# Returns the secret of a name, or None; raises SetupError where it cannot be read.
FindSecret = Callable[[str], str | None]


def no_secret(_: str) -> str | None:
    """Find no secret: where configs are read for anything but their values."""
    return None


def is_secret_name(name: str) -> bool:
    return _SECRET_NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class Surroundings:
    """Sources of variables: the environment, the folder of the config file, and secrets."""

    environment: Mapping[str, str]
    folder: Path
    find_secret: FindSecret = no_secret

    @property
    def home(self) -> str | None:
        return self.environment.get("HOME") or self.environment.get("USERPROFILE")

    def predefined(self, name: str) -> str | None:
        values = {
            "workspaceFolder": str(self.folder),
            "workspaceFolderBasename": self.folder.name,
            "userHome": self.home,
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        return values.get(name)


def fill(text: str, surroundings: Surroundings) -> tuple[str, list[Finding]]:
    """Expand the variables of a text; return it with findings for those that cannot be expanded."""
    filling = _Filling(surroundings)
    return filling.text(text, 0), filling.findings


def variables_in(value: object) -> set[str]:
    """Return the names of the environment variables that texts anywhere in the value reference."""
    if isinstance(value, str):
        bodies = {match[1].partition(":-")[0].removeprefix("env:") for match in _OPENED.finditer(value)}
        return {name for name in bodies if _NAME.fullmatch(name) and name not in _PREDEFINED}
    if isinstance(value, Mapping):
        return set().union(*map(variables_in, (*value, *value.values())))
    return set().union(*map(variables_in, value)) if isinstance(value, list) else set()


def secrets_in(value: object) -> set[str]:
    """Return the names of the secrets that texts anywhere in the value reference."""
    if isinstance(value, str):
        bodies = {match[1].partition(":-")[0] for match in _OPENED.finditer(value)}
        return {body.removeprefix(_KEYRING) for body in bodies if body.startswith(_KEYRING)}
    if isinstance(value, Mapping):
        return set().union(*map(secrets_in, (*value, *value.values())))
    return set().union(*map(secrets_in, value)) if isinstance(value, list) else set()


def closing_brace(text: str, start: int) -> int:
    """Return the position of the brace that closes the `${` before `start`, or -1."""
    depth = 1
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.start()
    return -1


@dataclass
class _Filling:
    surroundings: Surroundings
    findings: list[Finding] = field(default_factory=list)

    def text(self, text: str, depth: int) -> str:
        parts, position = [], 0
        while (start := text.find("${", position)) >= 0:
            if start > position and text[start - 1] == "$":
                parts.append(text[position : start - 1] + "${")
                position = start + 2
                continue
            end = closing_brace(text, start + 2)
            if end < 0:
                return self._cannot("has a `${` that is not closed", "close it with `}`, or write `$${` for `${`")
            if depth > MAX_DEPTH:
                return self._cannot("has defaults in defaults without end", f"nest them {MAX_DEPTH} deep at most")
            parts += [text[position:start], self._value(text[start + 2 : end], depth)]
            position = end + 1
        return "".join([*parts, text[position:]])

    def _value(self, body: str, depth: int) -> str:
        name, has_default, default = body.partition(":-")
        if name.startswith(_KEYRING):
            return self._secret(name.removeprefix(_KEYRING), default if has_default else None, depth)
        value = self._look_up(name.removeprefix("env:"))
        if value or (value is not None and not has_default):
            return value
        if has_default:
            return self.text(default, depth + 1)
        return self._unset(name.removeprefix("env:"))

    def _secret(self, name: str, default: str | None, depth: int) -> str:
        if not is_secret_name(name):
            return self._cannot("has a `${keyring:...}` without the name of a secret", f"a name is {NAME_RULE}")
        try:
            value = self.surroundings.find_secret(name)
        except SetupError as error:
            return self._cannot(f"needs the secret {name}: {error.message}", error.hint)
        if value is not None:
            return value
        if default is not None:
            return self.text(default, depth + 1)
        return self._cannot(f"needs the secret {name}, which is not set", f"toolscript secrets set {name}")

    def _look_up(self, name: str) -> str | None:
        predefined = self.surroundings.predefined(name)
        return self.surroundings.environment.get(name) if predefined is None else predefined

    def _unset(self, name: str) -> str:
        if match := _INPUT.fullmatch(name):
            fix = f"write a variable in its place, such as ${{{_as_variable(match[1])}}}, and set it"
            return self._cannot(f"uses the input {match[1]!r}, which only VS Code can prompt for", fix)
        if not _NAME.fullmatch(name):
            return self._cannot(
                "has a `${...}` that is no variable", "write ${NAME} or ${NAME:-default}; `$${` stands for `${`"
            )
        return self._cannot(
            f"needs the variable {name}, which is not set",
            f"set it (export {name}=...), or give a default: ${{{name}:-...}}",
        )

    def _cannot(self, message: str, fix: str) -> str:
        self.findings.append(Finding(message, fix))
        return ""


def _as_variable(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name).upper()
