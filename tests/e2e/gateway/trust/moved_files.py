"""Files that are elsewhere, linked, replaced or changed."""

import os
from pathlib import Path

from tests.e2e.gateway.trust.attempts import attempt
from tests.e2e.gateway.trust.traps import NAME, Trap


@attempt
def a_file_above_the_folder(trap: Trap, project: Path) -> None:
    trap.put(project)
    deep = project / "a" / "b" / "c"
    deep.mkdir(parents=True)
    trap.look(deep)


@attempt
def a_nearer_file_than_the_trusted_one(trap: Trap, project: Path) -> None:
    trap.trust(trap.put(project, trap.harmless))
    trap.put(project / "sub")
    trap.look(project / "sub")


@attempt
def a_copy_of_a_trusted_file_elsewhere(trap: Trap, project: Path) -> None:
    """The same content refers to other files in another folder."""
    trap.trust(trap.put(project))
    other = project.parent / "other"
    trap.put(other)
    trap.look(other)


@attempt
def a_folder_named_like_the_trusted_one(trap: Trap, project: Path) -> None:
    trap.trust(trap.put(project / "app"))
    (project / "app").rename(project / "old")
    trap.put(project / "app", trap.text.replace("sleep 5", "sleep 4"))
    trap.look(project / "app")


@attempt
def a_link_to_a_file_elsewhere(trap: Trap, project: Path) -> None:
    (project / NAME).symlink_to(trap.put(project.parent / "evil"))
    trap.look()


@attempt
def a_link_to_a_trusted_file_of_another_project(trap: Trap, project: Path) -> None:
    trusted = trap.put(project.parent / "other")
    trap.trust(trusted)
    (project / NAME).symlink_to(trusted)
    trap.look()


@attempt
def a_trusted_link_that_leads_elsewhere_now(trap: Trap, project: Path) -> None:
    link = project / NAME
    link.symlink_to(trap.put(project.parent / "fine", trap.harmless))
    trap.trust(link)
    link.unlink()
    link.symlink_to(trap.put(project.parent / "evil"))
    trap.look()


@attempt
def a_trusted_link_whose_file_changed(trap: Trap, project: Path) -> None:
    target = trap.put(project.parent / "fine", trap.harmless)
    (project / NAME).symlink_to(target)
    trap.trust(project / NAME)
    target.write_text(trap.text, "utf-8")
    trap.look()


@attempt
def a_folder_reached_by_a_link(trap: Trap, project: Path) -> None:
    trap.put(project / "real")
    (project / "link").symlink_to(project / "real")
    trap.look(project / "link")


@attempt
def a_folder_replaced_by_a_link(trap: Trap, project: Path) -> None:
    trap.trust(trap.put(project / "app", trap.harmless))
    (project / "app").rename(project / "old")
    trap.put(project / "evil")
    (project / "app").symlink_to(project / "evil")
    trap.look(project / "app")


@attempt
def a_link_to_itself(trap: Trap, project: Path) -> None:
    (project / NAME).symlink_to(project / NAME)
    trap.look()


@attempt
def a_file_changed_after_trust(trap: Trap, project: Path) -> None:
    trap.trust(trap.put(project, trap.harmless))
    trap.put(project)
    trap.look()


@attempt
def a_file_with_a_space_more(trap: Trap, project: Path) -> None:
    trap.trust(trap.put(project))
    trap.put(project, trap.text + " ")
    trap.look()


@attempt
def a_file_replaced_by_another(trap: Trap, project: Path) -> None:
    trap.trust(trap.put(project, trap.harmless))
    trap.put(project / "new").replace(project / NAME)
    trap.look()


@attempt
def a_file_changed_with_its_size_and_times_kept(trap: Trap, project: Path) -> None:
    path = trap.put(project, trap.text.replace("sleep 5", "sleep 4"))
    trap.trust(path)
    before = path.stat()
    path.write_text(trap.text, "utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    trap.look()


@attempt
def a_file_trusted_once_and_forgotten(trap: Trap, project: Path) -> None:
    path = trap.put(project)
    trap.trust(path)
    trap.machine.here().run("trust", str(path), "--forget")
    trap.look()


@attempt
def a_file_removed_and_made_anew(trap: Trap, project: Path) -> None:
    path = trap.put(project, trap.harmless)
    trap.trust(path)
    path.unlink()
    trap.put(project)
    trap.look()
