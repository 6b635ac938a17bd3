"""A real Secret Service for tests: gnome-keyring on a session bus of its own, with an empty password."""

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

DAEMON, BUS = "gnome-keyring-daemon", "dbus-daemon"
IS_INSTALLED = bool(shutil.which(DAEMON) and shutil.which(BUS))
MISSING = "gnome-keyring and D-Bus are not installed, see scripts/fetch-keyring"
WAIT_SECONDS = 20.0

# Nothing on this bus is started on demand: no window may ask for a password.
_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:dir={folder}</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


@contextmanager
def secret_service(folder: Path, *, locked: bool = False) -> Iterator[Mapping[str, str]]:
    """Run it for the duration of the context; yield the variables with which programs find it.

    The path of the folder must be short: sockets lie in it. A locked service of an earlier one needs its folder.
    """
    folder.mkdir(exist_ok=True)
    config = folder / "bus.conf"
    config.write_text(_CONFIG.format(folder=folder), "utf-8")
    bus = [BUS, f"--config-file={config}", "--print-address", "--nofork"]
    with subprocess.Popen(bus, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as session:
        assert session.stdout is not None
        variables = {
            "DBUS_SESSION_BUS_ADDRESS": session.stdout.readline().strip(),
            "XDG_RUNTIME_DIR": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
        }
        try:
            with _keyring(variables, locked=locked):
                yield variables
        finally:
            _end(session)


@contextmanager
def _keyring(variables: Mapping[str, str], *, locked: bool) -> Iterator[None]:
    unlock = [] if locked else ["--unlock"]
    with subprocess.Popen(
        [DAEMON, *unlock, "--foreground", "--components=secrets"],
        env={**variables, "PATH": "/usr/bin:/bin", "HOME": variables["XDG_RUNTIME_DIR"]},
        executable=shutil.which(DAEMON),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as daemon:
        assert daemon.stdin is not None
        # The password of its keyring.
        daemon.stdin.write("\n")
        daemon.stdin.close()
        try:
            _wait_for_name(variables["DBUS_SESSION_BUS_ADDRESS"])
            yield
        finally:
            _end(daemon)


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(WAIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _wait_for_name(address: str) -> None:
    from jeepney import DBusAddress, new_method_call
    from jeepney.io.blocking import open_dbus_connection

    bus = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
    until = time.monotonic() + WAIT_SECONDS
    with open_dbus_connection(address) as connection:
        ask = new_method_call(bus, "NameHasOwner", "s", ("org.freedesktop.secrets",))
        while not connection.send_and_get_reply(ask, timeout=WAIT_SECONDS).body[0]:
            assert time.monotonic() < until, "the Secret Service does not answer"
            time.sleep(0.02)
