"""Files that are not regular, have other names, are forged, swapped, or owned by another user."""

import os
import socket
import stat
import subprocess
import threading
from contextlib import chdir, suppress
from pathlib import Path

from tests.e2e.commands import command
from tests.e2e.gateway.trust.attempts import attempt, attempt_as_root
from tests.e2e.gateway.trust.traps import NAME, Trap, give_to_nobody
from toolscript.gateway.config.trust import TrustStore


@attempt
def a_pipe(trap: Trap, project: Path) -> None:
    """With a writer that has the content ready for the reader."""
    os.mkfifo(project / NAME)

    def write() -> None:
        with suppress(OSError), (project / NAME).open("w", encoding="utf-8") as pipe:
            pipe.write(trap.text)

    threading.Thread(target=write, daemon=True).start()
    trap.look()
    trap.look(None, "trust", "--yes")
    trap.look(None, "list-servers", "--config", str(project / NAME))


@attempt
def a_pipe_without_a_writer(trap: Trap, project: Path) -> None:
    os.mkfifo(project / NAME)
    trap.look()


@attempt
def a_link_to_a_device(trap: Trap, project: Path) -> None:
    (project / NAME).symlink_to("/dev/zero")
    trap.look()
    trap.look(None, "list-servers", "--config", "/dev/zero")


@attempt
def a_folder_of_that_name(trap: Trap, project: Path) -> None:
    trap.put(project / NAME)
    trap.look()


@attempt
def a_socket_of_that_name(trap: Trap, project: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        with chdir(project):
            listener.bind(NAME)
        trap.look()


@attempt
def a_file_named_by_the_environment(trap: Trap, project: Path) -> None:
    path = trap.put(project / "sub").rename(project / "other.json")
    trap.look(None, "list-servers", TOOLSCRIPT_CONFIG=str(path))


@attempt
def a_file_named_by_the_environment_from_here(trap: Trap, project: Path) -> None:
    trap.put(project / "sub").rename(project / "other.json")
    trap.look(None, "list-servers", TOOLSCRIPT_CONFIG="other.json")


@attempt
def a_config_by_address(trap: Trap, _: Path) -> None:
    url = f"http://127.0.0.1:{trap.port}/config.json"
    trap.look(None, "list-servers", TOOLSCRIPT_CONFIG=url)
    trap.look(None, "list-servers", "--config", url)


@attempt
def a_data_folder_that_came_with_records_of_trust(trap: Trap, project: Path) -> None:
    path = trap.put(project)
    forged = TrustStore(project)
    forged.decide(path, trap.text, trusted=True)
    (project / ".toolscript" / "trusted").rename(project / "trusted")
    trap.look(None, "list-servers", TOOLSCRIPT_DATA_DIR=str(project))
    trap.look(None, "list-servers", TOOLSCRIPT_DATA_DIR=str(project / "trusted"))


@attempt
def a_record_of_another_file_under_its_name(trap: Trap, project: Path) -> None:
    store, other = TrustStore(trap.machine.home), trap.put(project.parent / "other")
    trap.trust(other)
    store.file_of(other).rename(store.file_of(trap.put(project)))
    trap.look()


@attempt
def a_record_that_is_a_pipe(trap: Trap, project: Path) -> None:
    file = TrustStore(trap.machine.home).file_of(trap.put(project))
    file.parent.mkdir(parents=True)
    os.mkfifo(file)
    trap.look()


@attempt
def a_record_that_says_yes_in_other_words(trap: Trap, project: Path) -> None:
    path = trap.put(project)
    trap.trust(path)
    file = TrustStore(trap.machine.home).file_of(path)
    for message in ('"yes"', "1", '"true"', "[true]", "null"):
        file.write_text(file.read_text("utf-8").replace("true", message), "utf-8")
        trap.look()
        trap.trust(path)
        file.write_text(file.read_text("utf-8").replace("true", "false"), "utf-8")
        trap.look()


@attempt
def a_refused_file(trap: Trap, project: Path) -> None:
    TrustStore(trap.machine.home).decide(trap.put(project), trap.text, trusted=False)
    trap.look()


@attempt
def a_file_swapped_while_it_is_looked_at(trap: Trap, project: Path) -> None:
    """Only the content that was shown is trusted."""
    from toolscript.gateway.config.read import ConfigPlace
    from toolscript.gateway.trust import TrustQuestion

    path = trap.put(project, trap.harmless)
    question = TrustQuestion(path, ConfigPlace().store.state_of(path, ""), (), path.read_text("utf-8"))
    trap.put(project)
    TrustStore(trap.machine.home).decide(question.path, question.text, trusted=True)
    trap.look()


@attempt
def a_file_swapped_while_commands_run(trap: Trap, project: Path) -> None:
    """A thousand swaps between the trusted file and another: check and use are atomic."""
    trap.trust(trap.put(project, trap.harmless))
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for text in (trap.text, trap.harmless):
                trap.put(project / "new", text).replace(project / NAME)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(20):
            trap.look(None, "list-tools")
    finally:
        stop.set()
        swapping.join()


@attempt
def a_name_that_the_persons_own_server_has(trap: Trap, project: Path) -> None:
    trap.machine.configure({"build": {"command": "true", "startupTimeout": 1}})
    trap.put(project)
    message = trap.look()
    assert "not trusted" in message


@attempt
def a_file_above_the_home_folder(trap: Trap, _: Path) -> None:
    trap.put(trap.machine.home.parent)
    work = trap.machine.home / "work"
    work.mkdir()
    trap.look(work)
    trap.look(trap.machine.home)


@attempt
def a_home_file_that_everybody_may_write(trap: Trap, _: Path) -> None:
    path = trap.put(trap.machine.home)
    path.chmod(0o666)
    trap.look()


@attempt
def a_project_that_looks_like_a_home_folder(trap: Trap, project: Path) -> None:
    trap.put(project / "home")
    (project / "home" / ".toolscript").mkdir()
    trap.look(project / "home")


@attempt
def a_git_hook(trap: Trap, project: Path) -> None:
    """A hook runs in the working folder, with the repository's own variables."""
    trap.put(project)
    hooks = project / "hooks"
    hooks.mkdir()
    hook = hooks / "post-commit"
    hook.write_text("#!/bin/sh\n" + " ".join(command("list-servers")) + " >hook.log 2>&1\nexit 0\n", "utf-8")
    hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
    environment = {**trap.machine.whole_environment(), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.hooksPath=hooks"]
    for words in (["init", "-q"], [*who, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *words], cwd=project, env=environment, check=True)
    assert "toolscript trust" in (project / "hook.log").read_text("utf-8")


@attempt
def a_file_that_is_not_to_be_read_whole(trap: Trap, project: Path) -> None:
    with (project / NAME).open("w", encoding="utf-8") as file:
        file.write(trap.text)
        file.truncate(40 << 20)
    trap.look()


@attempt_as_root
def a_file_of_another_user_here(trap: Trap, project: Path) -> None:
    give_to_nobody(trap.put(project))
    assert "belongs to another user" in trap.look()


@attempt_as_root
def a_file_of_another_user_in_a_folder_of_all(trap: Trap, project: Path) -> None:
    project.chmod(0o1777)
    give_to_nobody(trap.put(project))
    trap.look()
    (project / "sub").mkdir()
    trap.look(project / "sub")


@attempt_as_root
def a_file_of_another_user_in_their_folder(trap: Trap, project: Path) -> None:
    give_to_nobody(trap.put(project / "theirs"))
    give_to_nobody(project / "theirs")
    trap.look(project / "theirs")


@attempt_as_root
def a_file_of_another_user_that_was_trusted(trap: Trap, project: Path) -> None:
    path = trap.put(project)
    trap.trust(path)
    give_to_nobody(path)
    trap.look()


@attempt_as_root
def a_file_of_another_user_by_name(trap: Trap, project: Path) -> None:
    path = trap.put(project)
    give_to_nobody(path)
    trap.look(None, "list-servers", "--config", str(path))
    trap.look(None, "trust", str(path), "--yes")
    trap.look()


@attempt_as_root
def a_home_file_of_another_user(trap: Trap, _: Path) -> None:
    give_to_nobody(trap.put(trap.machine.home))
    trap.look()


@attempt_as_root
def a_link_of_another_user_to_a_trusted_file(trap: Trap, project: Path) -> None:
    path = trap.put(project)
    trap.trust(path)
    path.rename(project / "real.json")
    path.symlink_to(project / "real.json")
    give_to_nobody(path)
    trap.look()


@attempt_as_root
def a_record_that_another_user_wrote(trap: Trap, project: Path) -> None:
    path = trap.put(project)
    trap.trust(path)
    give_to_nobody(TrustStore(trap.machine.home).file_of(path))
    trap.look()
