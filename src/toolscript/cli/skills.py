"""`toolscript skills`: list, create, change and assign skills."""

import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import (
    WORKER_HINT,
    AsJson,
    By,
    Description,
    Domain,
    Examples,
    ItemId,
    Keywords,
    Name,
    OnlyNamespace,
    PageCursor,
    PageLimit,
    SkillId,
    person,
    say_if_pending,
    seen_of,
    skill_fields,
)
from toolscript.cli.output import progress, say, show
from toolscript.cli.skills_text import (
    assigned_text,
    audit_table,
    descriptions_table,
    proposals_table,
    skill_text,
    skills_table,
)
from toolscript.cli.suggestions import suggestion_commands
from toolscript.core.errors import InvalidRequest
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.taxonomy import Member, SkillEntry
from toolscript.tools.model.skill_json import skill_from_json

if TYPE_CHECKING:
    from toolscript.tools.skills.management import SkillManagement, Written

PAGE = 200

LookedAt = Annotated[str, typer.Option(help="The namespace whose items are looked at.")]


class Source(StrEnum):
    RULES = "rules"
    LLM = "llm"


def write_commands(group: typer.Typer) -> None:
    _edit(group)
    _activation(group)
    _import(group)
    _assign(group)
    _propose(group)
    _describe(group)
    _reclassify_and_rebuild(group)


def _edit(group: typer.Typer) -> None:
    @group.command()
    def add(
        skill_id: SkillId,
        name: Annotated[str, typer.Option(help="Display name.")],
        description: Description = None,
        keyword: Keywords = None,
        example: Examples = None,
        domain: Domain = None,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Add a skill."""
        fields = skill_fields(name, description, keyword, example, domain)
        skill = skill_from_json({"id": skill_id, **fields})
        from toolscript.server.skills import open_skills

        with open_skills() as ask:
            _show(ask(lambda skills: skills.add(skill, person(by))), "added", as_json=as_json)

    @group.command()
    def edit(
        skill_id: SkillId,
        name: Name = None,
        description: Description = None,
        keyword: Keywords = None,
        example: Examples = None,
        domain: Domain = None,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Change a skill; fields that are not given stay unchanged."""
        changes = skill_fields(name, description, keyword, example, domain)
        if not changes:
            raise InvalidRequest(
                "there is nothing to change", hint="`toolscript skills edit --help` lists the fields"
            )
        from toolscript.server.skills import open_skills

        with open_skills() as ask:
            _show(ask(lambda skills: skills.edit(skill_id, changes, person(by))), "changed", as_json=as_json)


def _activation(group: typer.Typer) -> None:
    @group.command()
    def deactivate(skill_id: SkillId, by: By = None, as_json: AsJson = False) -> None:
        """Remove a skill from routing at once; its items stay assigned."""
        from toolscript.server.skills import open_skills

        with open_skills() as ask:
            written = ask(lambda skills: skills.set_active(skill_id, False, person(by)))
        _show(written, "is inactive", as_json=as_json)

    @group.command()
    def activate(skill_id: SkillId, by: By = None, as_json: AsJson = False) -> None:
        """Add a skill to routing again."""
        from toolscript.server.skills import open_skills

        with open_skills() as ask:
            written = ask(lambda skills: skills.set_active(skill_id, True, person(by)))
        _show(written, "is active", as_json=as_json)


def _import(group: typer.Typer) -> None:
    @group.command("import")
    def import_(
        file: Annotated[Path, typer.Argument(help="A JSON list of skills, or a skill on each line.")],
        replace: Annotated[bool, typer.Option("--replace", help="Deactivate all other skills.")] = False,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Add the skills of a file, and change those that differ. Unchanged skills cost nothing."""
        from toolscript.server.skills import import_skills

        with progress() as on_progress:
            done, routing = import_skills(file, replace=replace, by=person(by), on_progress=on_progress)
        text = (
            f"{len(done.added):,} added, {len(done.changed):,} changed, {done.unchanged:,} unchanged, "
            f"{len(done.deactivated):,} deactivated"
        )
        show({**asdict(done), "routing": str(routing)}, text, as_json=as_json)
        say_if_pending(routing)
        if done.written:
            say("hint: `toolscript skills reclassify` classifies the items again by the changed skills")


def _assign(group: typer.Typer) -> None:
    @group.command()
    def assign(
        item_id: ItemId,
        skills: Annotated[
            list[str] | None, typer.Argument(metavar="SKILL", help="Ids of skills, the primary one first.")
        ] = None,
        none: Annotated[bool, typer.Option("--none", help="Assign the item to no skill.")] = False,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Assign an item to skills by hand. No classifier overwrites it."""
        if none is bool(skills):
            raise InvalidRequest("no skills were given", hint="name them, or use --none")
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import ItemSkills

        with open_skills() as ask:
            assignments = ask(lambda managed: managed.assignments.set_by_hand(item_id, skills or [], person(by)))
        show(ItemSkills.of(item_id, assignments), assigned_text(item_id, assignments), as_json=as_json)
        say(WORKER_HINT)

    @group.command()
    def release(item_id: ItemId, by: By = None, as_json: AsJson = False) -> None:
        """Return an item to the classifier; its skills stay until it is classified again."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import ItemSkills

        with open_skills() as ask:
            ask(lambda managed: managed.assignments.release(item_id, person(by)))
            assignments = ask(lambda managed: managed.assignments.of(item_id))
        text = f"item {item_id} is assigned by the classifier again"
        show(ItemSkills.of(item_id, assignments), text, as_json=as_json)
        say(WORKER_HINT)


def _propose(group: typer.Typer) -> None:
    @group.command()
    def propose(
        namespace: LookedAt = DEFAULT_NAMESPACE,
        dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the proposals, and store none.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """Propose new skills from the items that no skill fits well.

        They wait for a decision, as suggestions do; until then nothing changes.
        """
        from toolscript.server.skills import propose_skills
        from toolscript.tools.model.proposals import proposals_json

        with progress() as on_progress:
            proposals, submitted = propose_skills(namespace=namespace, is_dry_run=dry_run, on_progress=on_progress)
        data = {
            "proposals": proposals_json(proposals),
            "submitted": None if submitted is None else asdict(submitted),
        }
        show(data, proposals_table(proposals) if proposals else "there is nothing to propose", as_json=as_json)
        if submitted is not None:
            say(f"{submitted.added} added, {submitted.changed} changed, {submitted.withdrawn} withdrawn")
            say("hint: `toolscript skills review` decides about them one by one")


def _describe(group: typer.Typer) -> None:
    @group.command()
    def describe(
        namespace: LookedAt = DEFAULT_NAMESPACE,
        as_json: AsJson = False,
    ) -> None:
        """Describe new and changed skills by their items, beside what people wrote.

        `skills show` has both descriptions. Searches do not use it.
        """
        from toolscript.server.skills import describe_skills

        with progress() as on_progress:
            described = describe_skills(namespace=namespace, on_progress=on_progress)
        data = [{"id": one.entry.skill.id, "text": one.text, "source": str(one.source)} for one in described]
        text = descriptions_table(described) if described else "every skill with items is described"
        show({"described": data}, text, as_json=as_json)


def _reclassify_and_rebuild(group: typer.Typer) -> None:
    @group.command()
    def reclassify(
        skill: Annotated[str | None, typer.Option(metavar="ID", help="Only items of this skill.")] = None,
        classifier: Annotated[
            Source | None, typer.Option(help="Only items with a skill from this classifier.")
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Mark items to be classified again, except those that a person assigned."""
        from toolscript.server import skills

        with progress() as on_progress:
            count = skills.reclassify(
                skill_id=skill, source=None if classifier is None else classifier.value, on_progress=on_progress
            )
        show({"marked": count}, f"{count:,} items marked to be classified again", as_json=as_json)
        if count:
            say(WORKER_HINT)

    @group.command()
    def rebuild(
        skills: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids; none: all skills.")] = None,
        as_json: AsJson = False,
    ) -> None:
        """Recompute the centroid of every skill exactly, and repair those that differ."""
        from toolscript.server.skills import rebuild_skills

        with progress() as on_progress:
            done = rebuild_skills(skills or (), on_progress=on_progress)
        text = (
            f"{done.skills:,} skills over {done.items:,} items: {len(done.mended):,} repaired, "
            f"largest drift {done.largest_drift:.2g}"
        )
        show(asdict(done), text, as_json=as_json)
        if done.mended:
            say(WORKER_HINT)


def _show(written: "Written", what: str, *, as_json: bool) -> None:
    from toolscript.tools.schemas.skills import SkillWritten

    data = SkillWritten.of(written.entry, routing=str(written.routing))
    show(data, f"{written.entry.skill.id} {what}", as_json=as_json)
    say_if_pending(written.routing)


def skill_commands() -> typer.Typer:
    group = typer.Typer(
        help="Skills: categories by which tool search is routed.", no_args_is_help=True, rich_markup_mode=None
    )
    _read(group)
    _history(group)
    write_commands(group)
    suggestion_commands(group)
    return group


def _read(group: typer.Typer) -> None:
    @group.command("list")
    def list_(
        inactive: Annotated[bool, typer.Option("--inactive", help="List inactive skills, too.")] = False,
        as_json: AsJson = False,
    ) -> None:
        """List the skills."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SkillPage

        with open_skills() as ask:
            entries = ask(lambda skills: _all(skills, active_only=not inactive))
        page = SkillPage.of_entries(entries, len(entries))
        show(page, skills_table(entries) if entries else "there is no skill", as_json=as_json)
        if not entries:
            say("hint: `toolscript skills import FILE` loads a taxonomy")

    @group.command("show")
    def show_(
        skill_id: SkillId,
        limit: Annotated[int, typer.Option(min=0, max=PAGE, help="Maximum number of its items to show.")] = 0,
        as_json: AsJson = False,
    ) -> None:
        """Show one skill, and some of its items."""

        async def assignments(skills: "SkillManagement") -> tuple[SkillEntry, list[Member]]:
            entry = await skills.taxonomy.find(skill_id)
            return entry, list(await skills.taxonomy.members(skill_id, 0, limit)) if limit else []

        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SkillShown, ToolOfSkillPage

        with open_skills() as ask:
            entry, members = ask(assignments)
        data = SkillShown.of(entry).model_dump(mode="json")
        if limit:
            data["tools"] = ToolOfSkillPage.of_members(members, limit).model_dump(mode="json")["results"]
        show(data, skill_text(entry, members), as_json=as_json)

    @group.command()
    def of(item_id: ItemId, as_json: AsJson = False) -> None:
        """Show the skills of an item."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import ItemSkills

        with open_skills() as ask:
            assignments = ask(lambda skills: skills.assignments.of(item_id))
        show(ItemSkills.of(item_id, assignments), assigned_text(item_id, assignments), as_json=as_json)


def _history(group: typer.Typer) -> None:
    @group.command()
    def audit(
        namespace: OnlyNamespace = None,
        cursor: PageCursor = "",
        limit: PageLimit = 50,
        as_json: AsJson = False,
    ) -> None:
        """Show the decisions of people, latest first."""
        from toolscript.core.web.cursors import decode_cursor
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import AuditPage

        before, seen = decode_cursor(cursor, 0) or None, seen_of(namespace)
        with open_skills() as ask:
            entries = ask(lambda skills: skills.taxonomy.within(seen).audit(before, limit + 1))
        page = AuditPage.of_entries(entries, limit)
        show(page, audit_table(entries[:limit]) if entries else "there are no decisions yet", as_json=as_json)
        if page.next_cursor and not as_json:
            say(f"hint: `toolscript skills audit --cursor {page.next_cursor}` shows older ones")

    @group.command()
    def export(
        file: Annotated[Path | None, typer.Argument(help="File to write; none: standard output.")] = None,
    ) -> None:
        """Write all skills as JSON, for `skills import`."""
        from toolscript.server.skills import export_skills

        count, text = export_skills(file)
        # It is data: a file or a pipe must get it unchanged.
        sys.stdout.write(text)
        say(f"{count:,} skills written" + (f" to {file}" if file else ""))


async def _all(skills: "SkillManagement", *, active_only: bool) -> list[SkillEntry]:
    # Imported here, so that help stays fast.
    from toolscript.tools.skills.management import all_skills

    return [entry async for entry in all_skills(skills.taxonomy, active_only=active_only)]
