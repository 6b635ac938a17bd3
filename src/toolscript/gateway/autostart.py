"""`gateway install` and `uninstall`: the gateway starts at login, and that is taken back."""

import getpass
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolscript.core.errors import NotFound, SetupError
from toolscript.gateway.autostart_files import (
    LABEL,
    MARK,
    TASK,
    UNIT,
    Launch,
    launchd_agent,
    systemd_unit,
    windows_task,
)
from toolscript.gateway.config.write import write_file
from toolscript.gateway.discovery import running_here
from toolscript.gateway.program import program_command, search_path
from toolscript.gateway.settings import GatewaySettings, environment, load_gateway_settings

STEP = "autostart"
RUN_SECONDS = 30.0
# Settings that the gateway is started with, by the option that says so. A token is in none of them.
OPTIONS = {"config": "--config", "data_dir": "--data-dir", "search_model": "--model", "gateway_port": "--port"}
PATHS = ("config", "data_dir")
INSTEAD = "start the gateway from your shell's profile: add `toolscript gateway start --background` to ~/.profile"


@dataclass(frozen=True)
class AutostartPlan:
    """The file, a link to it where the system wants one, and commands that tell the system of it.

    `start` also runs the gateway now.
    """

    system: str
    path: Path
    text: str
    link: Path | None = None
    register: tuple[tuple[str, ...], ...] = ()
    start: tuple[tuple[str, ...], ...] = ()
    stop: tuple[tuple[str, ...], ...] = ()
    encoding: str = "utf-8"

    @property
    def paths(self) -> list[Path]:
        return [self.path, *([self.link] if self.link is not None else [])]

    @property
    def backup(self) -> Path:
        return self.path.with_name(f"{self.path.name}.toolscript-backup")


@dataclass(frozen=True)
class Installed:
    """`running`: a gateway runs now, by this or from before."""

    plan: AutostartPlan
    running: bool = False


def plan_install(*, flags: Mapping[str, object]) -> AutostartPlan:
    settings = load_gateway_settings(flags)
    return autostart_plan(
        sys.platform, Path.home(), environment(), launch_of(settings), settings.data_folder.absolute()
    )


def chosen_settings(settings: GatewaySettings) -> dict[str, str]:
    """Return the settings that an option or a variable made, of those that a start has options for."""
    values = {name: str(getattr(settings, name)) for name in OPTIONS if name in settings.sources}
    whole = {name: str(Path(value).expanduser().absolute()) for name, value in values.items() if name in PATHS}
    return {name: value for name, value in {**values, **whole}.items() if values[name]}


def launch_of(settings: GatewaySettings) -> Launch:
    """Return how the gateway is started: what this shell has set is not there at login."""
    arguments = [word for name, value in chosen_settings(settings).items() for word in (OPTIONS[name], value)]
    variables = {} if sys.platform == "win32" else {"PATH": search_path(environment())}
    return Launch((*program_command(), "gateway", "start", *arguments), str(Path.home()), variables)


def autostart_plan(
    platform: str, home: Path, environment: Mapping[str, str], launch: Launch, data_folder: Path
) -> AutostartPlan:
    if platform == "darwin":
        agent = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
        domain = f"gui/{_user_id()}"
        return AutostartPlan(
            "launchd",
            agent,
            launchd_agent(launch, str(data_folder / "gateway.log")),
            start=(("launchctl", "bootstrap", domain, str(agent)),),
            stop=(("launchctl", "bootout", f"{domain}/{LABEL}"),),
        )
    if platform == "win32":
        file = data_folder / "autostart.xml"
        return AutostartPlan(
            "the task scheduler",
            file,
            windows_task(launch, getpass.getuser()),
            register=(("schtasks", "/create", "/tn", TASK, "/xml", str(file), "/f"),),
            start=(("schtasks", "/run", "/tn", TASK),),
            stop=(("schtasks", "/end", "/tn", TASK), ("schtasks", "/delete", "/tn", TASK, "/f")),
            encoding="utf-16",
        )
    configured = environment.get("XDG_CONFIG_HOME")
    units = (Path(configured) if configured else home / ".config") / "systemd" / "user"
    return AutostartPlan(
        "systemd",
        units / UNIT,
        systemd_unit(launch),
        link=units / "default.target.wants" / UNIT,
        register=(("systemctl", "--user", "daemon-reload"),),
        start=(("systemctl", "--user", "start", UNIT),),
        stop=(("systemctl", "--user", "stop", UNIT),),
    )


def why_not_here(platform: str, environment: Mapping[str, str]) -> str:
    """Return why nothing can be started at login here, or an empty string."""
    if platform in ("darwin", "win32"):
        return ""
    if not platform.startswith("linux"):
        return f"there is no autostart for {platform}"
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if runtime and (Path(runtime) / "systemd" / "private").exists():
        return ""
    return "systemd is not running for this user"


def is_installed(*, flags: Mapping[str, object]) -> bool:
    return _is_ours(plan_install(flags=flags))


def install(*, flags: Mapping[str, object]) -> Installed:
    """Write the files and start the gateway, unless one runs already: that one goes on until the next login.

    A file of ours that says something else is kept beside the new one.
    """
    settings = load_gateway_settings(flags)
    if why := why_not_here(sys.platform, environment()):
        raise SetupError(why, hint=INSTEAD)
    plan = plan_install(flags=flags)
    if plan.path.exists():
        if not _is_ours(plan):
            raise SetupError(f"{plan.path} is not ours", hint="move it away, then install again")
        if (earlier := plan.path.read_text(plan.encoding)) != plan.text:
            plan.backup.write_text(earlier, plan.encoding)
    running = running_here(settings) is not None
    _write(plan)
    try:
        _run(plan.register)
        if not running:
            _start(plan)
    except SetupError:
        _remove(plan)
        raise
    return Installed(plan, running=True)


def uninstall(*, flags: Mapping[str, object]) -> Installed:
    """Stop what was started at login, and remove its files."""
    plan = plan_install(flags=flags)
    if not _is_ours(plan):
        raise NotFound("the gateway does not start at login", hint="`toolscript gateway install` makes it do so")
    here = not why_not_here(sys.platform, environment())
    if here:
        _stop(plan)
    _remove(plan)
    if here and sys.platform.startswith("linux"):
        _run(plan.register)
    return Installed(plan)


def _is_ours(plan: AutostartPlan) -> bool:
    try:
        return MARK in plan.path.read_text(plan.encoding)
    except (OSError, ValueError):
        return False


def _remove(plan: AutostartPlan) -> None:
    for path in (*plan.paths, plan.backup):
        path.unlink(missing_ok=True)


def _write(plan: AutostartPlan) -> None:
    try:
        for path in plan.paths:
            path.parent.mkdir(parents=True, exist_ok=True)
        if plan.encoding == "utf-8":
            write_file(plan.path, plan.text, 0o644)
        else:
            plan.path.write_text(plan.text, plan.encoding)
        if plan.link is not None:
            plan.link.unlink(missing_ok=True)
            plan.link.symlink_to(Path("..") / plan.path.name)
    except OSError as error:
        raise SetupError(
            f"{error.filename or plan.path} cannot be written: {error.strerror}", hint="check who may write there"
        ) from error


def _start(plan: AutostartPlan) -> None:
    if plan.system == "launchd":
        # It refuses to load an agent again, and one stays loaded when its gateway stops.
        _stop(plan)
    _run(plan.start)


def _stop(plan: AutostartPlan) -> None:
    for command in plan.stop:
        # What does not run cannot be stopped.
        with suppress(SetupError):
            _run([command])


def _run(commands: Sequence[tuple[str, ...]]) -> None:
    for command in commands:
        shown = " ".join(command)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SetupError(f"`{shown}` failed: {error}"[:300], hint=INSTEAD) from error
        if done.returncode:
            reason = " ".join((done.stderr or done.stdout).split())[:300]
            raise SetupError(f"`{shown}` failed: {reason or f'exit code {done.returncode}'}", hint=INSTEAD)


def _user_id() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
