"""What starts the gateway at login, as text: a systemd user unit, a launchd agent, a Windows task."""

import plistlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from subprocess import list2cmdline
from xml.sax.saxutils import escape

from toolscript.core.errors import SetupError

UNIT = "toolscript-gateway.service"
LABEL = "toolscript.gateway"
TASK = "Toolscript gateway"
# Tells our file from another one of the same name.
MARK = "Written by `toolscript gateway install`; `toolscript gateway uninstall` takes it back."


@dataclass(frozen=True)
class Launch:
    """What is started: the command with its whole path, the variables it needs, and the folder it works in.

    `environment` has no secrets: every process of the user can read these files.
    """

    command: tuple[str, ...]
    folder: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        texts = [*self.command, self.folder, *self.environment, *self.environment.values()]
        if any(char < " " or char == "\x7f" for text in texts for char in text):
            raise SetupError(
                "a path or variable for the autostart has a control character", hint="rename it, or unset it"
            )


def systemd_unit(launch: Launch) -> str:
    """A settings error (exit code 2) does not pass by trying again."""
    variables = [f"Environment={_quoted(f'{name}={value}')}" for name, value in launch.environment.items()]
    command = " ".join(_quoted(word).replace("$", "$$") for word in launch.command)
    lines = [
        f"# {MARK}",
        "[Unit]",
        "Description=Toolscript gateway: finds and calls the tools of your MCP servers",
        "StartLimitIntervalSec=300",
        "StartLimitBurst=5",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={command}",
        f"WorkingDirectory={launch.folder.replace('%', '%%')}",
        *variables,
        "Restart=on-failure",
        "RestartSec=2",
        "RestartPreventExitStatus=2",
        "TimeoutStopSec=20",
        "KillMode=mixed",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Quote for systemd, for which `%` begins a specifier."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def launchd_agent(launch: Launch, log: str) -> str:
    agent = {
        "Label": LABEL,
        "ProgramArguments": list(launch.command),
        "WorkingDirectory": launch.folder,
        "EnvironmentVariables": dict(launch.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ProcessType": "Background",
        "StandardErrorPath": log,
    }
    text = plistlib.dumps(agent, sort_keys=False).decode()
    return text.replace("<plist ", f"<!-- {MARK} -->\n<plist ", 1)


def windows_task(launch: Launch, user: str) -> str:
    """A task has no environment: Windows gives it the user's."""
    program, *arguments = launch.command
    return _TASK_XML.format(
        mark=escape(MARK),
        user=escape(user),
        program=escape(program),
        arguments=escape(list2cmdline(arguments)),
        folder=escape(launch.folder),
    )


_TASK_XML = """\
<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>{mark}</Description>
  </RegistrationInfo>
  <Triggers>
    <LogonTrigger>
      <Enabled>true</Enabled>
      <UserId>{user}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>{user}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Hidden>true</Hidden>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>3</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>{program}</Command>
      <Arguments>{arguments}</Arguments>
      <WorkingDirectory>{folder}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
"""
