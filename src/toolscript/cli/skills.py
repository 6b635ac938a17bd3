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
    PageLimit,
    SkillId,
    fields_given,
    person,
    say_if_pending,
)
from toolscript.cli.output import progress, say, show
from toolscript.cli.skills_text import assigned_text, audit_table, skill_card, skills_table
from toolscript.cli.suggestions import suggestion_commands
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import MAX_ID
from toolscript.core.taxonomy import Member, SkillEntry
from toolscript.tools.model.skill_json import skill_from_json

if TYPE_CHECKING:
    from toolscript.tools.skills.management import SkillManagement, Written

PAGE = 200


class Source(StrEnum):
    RULES = "rules"
    LLM = "llm"


def write_commands(group: typer.Typer) -> None:
    _edit(group)
    _switch(group)
    _import(group)
    _assign(group)
    _again(group)


def _edit(group: typer.Typer) -> None:
    @group.command()
    def add(
        skill_id: SkillId,
        name: Annotated[str, typer.Option(help="What it is called.")],
        description: Description = None,
        keyword: Keywords = None,
        example: Examples = None,
        domain: Domain = None,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Add a skill."""
        given = fields_given(name, description, keyword, example, domain)
        skill = skill_from_json({"id": skill_id, **given})
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
        """Change a skill; what is not given stays as it is."""
        changes = fields_given(name, description, keyword, example, domain)
        if not changes:
            raise InvalidRequest(
                "there is nothing to change", hint="`toolscript skills edit --help` shows what can be"
            )
        from toolscript.server.skills import open_skills

        with open_skills() as ask:
            _show(ask(lambda skills: skills.edit(skill_id, changes, person(by))), "changed", as_json=as_json)


def _switch(group: typer.Typer) -> None:
    @group.command()
    def deactivate(skill_id: SkillId, by: By = None, as_json: AsJson = False) -> None:
        """Take a skill out of routing at once; its items keep it, and nothing is lost."""
        from toolscript.server.skills import open_skills

        with open_skills() as ask:
            written = ask(lambda skills: skills.set_active(skill_id, False, person(by)))
        _show(written, "is inactive", as_json=as_json)

    @group.command()
    def activate(skill_id: SkillId, by: By = None, as_json: AsJson = False) -> None:
        """Route searches by a skill again."""
        from toolscript.server.skills import open_skills

        with open_skills() as ask:
            written = ask(lambda skills: skills.set_active(skill_id, True, person(by)))
        _show(written, "is active", as_json=as_json)


def _import(group: typer.Typer) -> None:
    @group.command("import")
    def import_(
        file: Annotated[Path, typer.Argument(help="A JSON list of skills, or a skill on each line.")],
        replace: Annotated[bool, typer.Option("--replace", help="Deactivate all others.")] = False,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Add the skills of a file, and change those that differ. What did not change costs nothing."""
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
            say("hint: `toolscript skills reclassify` has items classified by the skills as they are now")


def _assign(group: typer.Typer) -> None:
    @group.command()
    def assign(
        item_id: ItemId,
        skills: Annotated[
            list[str] | None, typer.Argument(metavar="SKILL", help="Ids of skills, the primary one first.")
        ] = None,
        none: Annotated[bool, typer.Option("--none", help="Keep the item out of all skills.")] = False,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Say which skills an item is in. No classifier changes it."""
        if none is bool(skills):
            raise InvalidRequest("which skills is it in?", hint="name them, or say --none")
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import ItemSkills

        with open_skills() as ask:
            given = ask(lambda managed: managed.assignments.set_by_hand(item_id, skills or [], person(by)))
        show(ItemSkills.of(item_id, given), assigned_text(item_id, given), as_json=as_json)
        say(WORKER_HINT)

    @group.command()
    def release(item_id: ItemId, by: By = None, as_json: AsJson = False) -> None:
        """Give an item back to the classifier; its skills stay until that has looked at it."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import ItemSkills

        with open_skills() as ask:
            ask(lambda managed: managed.assignments.release(item_id, person(by)))
            assignments = ask(lambda managed: managed.assignments.of(item_id))
        text = f"item {item_id} is the classifier's again"
        show(ItemSkills.of(item_id, assignments), text, as_json=as_json)
        say(WORKER_HINT)


def _again(group: typer.Typer) -> None:
    @group.command()
    def reclassify(
        skill: Annotated[str | None, typer.Option(metavar="ID", help="Only items of this skill.")] = None,
        source: Annotated[
            Source | None, typer.Option(help="Only items with a skill from this classifier.")
        ] = None,
        as_json: AsJson = False,
    ) -> None:
        """Have items classified anew, but for those a person decided about."""
        from toolscript.server import skills

        with progress() as on_progress:
            count = skills.reclassify(
                skill_id=skill, source=None if source is None else source.value, on_progress=on_progress
            )
        show({"marked": count}, f"{count:,} items are to be classified anew", as_json=as_json)
        if count:
            say(WORKER_HINT)

    @group.command()
    def rebuild(
        skills: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Ids; none: all skills.")] = None,
        as_json: AsJson = False,
    ) -> None:
        """Add up every skill's items again, exactly, and mend the sums that differ."""
        from toolscript.server.skills import rebuild_skills

        with progress() as on_progress:
            done = rebuild_skills(skills or (), on_progress=on_progress)
        text = (
            f"{done.skills:,} skills over {done.items:,} items: {len(done.mended):,} mended, "
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
        all_: Annotated[bool, typer.Option("--all", help="Inactive ones too.")] = False, as_json: AsJson = False
    ) -> None:
        """List the skills."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SkillPage

        with open_skills() as ask:
            entries = ask(lambda skills: _all(skills, active_only=not all_))
        page = SkillPage.of(entries, len(entries))
        show(page, skills_table(entries) if entries else "there is no skill", as_json=as_json)
        if not entries:
            say("hint: `toolscript skills import FILE` loads a taxonomy")

    @group.command("show")
    def show_(
        skill_id: SkillId,
        tools: Annotated[int, typer.Option(min=0, max=PAGE, help="Show so many of its items.")] = 0,
        as_json: AsJson = False,
    ) -> None:
        """Show one skill, and items that are in it."""

        async def assignments(skills: "SkillManagement") -> tuple[SkillEntry, list[Member]]:
            entry = await skills.taxonomy.find(skill_id)
            return entry, list(await skills.taxonomy.members(skill_id, 0, tools)) if tools else []

        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import MemberPage, SkillShown

        with open_skills() as ask:
            entry, members = ask(assignments)
        data = SkillShown.of(entry).model_dump(mode="json")
        if tools:
            data["tools"] = MemberPage.of(members, tools).model_dump(mode="json")["tools"]
        show(data, skill_card(entry, members), as_json=as_json)

    @group.command()
    def of(item_id: ItemId, as_json: AsJson = False) -> None:
        """Show which skills an item is in."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import ItemSkills

        with open_skills() as ask:
            assignments = ask(lambda skills: skills.assignments.of(item_id))
        show(ItemSkills.of(item_id, assignments), assigned_text(item_id, assignments), as_json=as_json)


def _history(group: typer.Typer) -> None:
    @group.command()
    def audit(
        before: Annotated[
            int | None, typer.Option(min=1, max=MAX_ID, help="Only what is older than this number.")
        ] = None,
        limit: PageLimit = 50,
        as_json: AsJson = False,
    ) -> None:
        """Show what people decided, latest first."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import AuditPage

        with open_skills() as ask:
            found = ask(lambda skills: skills.taxonomy.audit(before, limit + 1))
        page = AuditPage.of(found, limit)
        show(page, audit_table(found[:limit]) if found else "nobody has decided anything", as_json=as_json)
        if page.next and not as_json:
            say(f"hint: `toolscript skills audit --before {page.next}` shows what is older")

    @group.command()
    def export(
        file: Annotated[Path | None, typer.Argument(help="File to write; none: standard output.")] = None,
    ) -> None:
        """Write all skills as JSON that `skills import` takes."""
        from toolscript.server.skills import export_skills

        count, text = export_skills(file)
        # It is data: in a file or a pipe it has to be what was stored.
        sys.stdout.write(text)
        say(f"{count:,} skills written" + (f" to {file}" if file else ""))


async def _all(skills: "SkillManagement", *, active_only: bool) -> list[SkillEntry]:
    # Imported here: help must not wait for what reads skills.
    from toolscript.tools.skills.management import all_skills

    return [entry async for entry in all_skills(skills.taxonomy, active_only=active_only)]
