"""`toolscript skills`: which there are, who is in which, and who decided what."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import say, show
from toolscript.cli.skills_options import ItemId, Limit, SkillId
from toolscript.cli.skills_suggested import suggestion_commands
from toolscript.cli.skills_text import assigned_text, audit_table, skill_card, skills_table
from toolscript.cli.skills_write import write_commands
from toolscript.model.items import LARGEST_ID
from toolscript.model.skill_json import assigned_to_json, audit_to_json, entry_to_json, member_to_json
from toolscript.model.skills import Member, SkillEntry

if TYPE_CHECKING:
    from toolscript.sync.skill_management import SkillManagement

PAGE = 200


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
        from toolscript.service.skills import open_skills

        with open_skills() as ask:
            entries = ask(lambda skills: _all(skills, active_only=not all_))
        shown = {"skills": [entry_to_json(entry) for entry in entries], "next": None}
        show(shown, skills_table(entries) if entries else "there is no skill", as_json=as_json)
        if not entries:
            say("hint: `toolscript skills import FILE` loads a taxonomy")

    @group.command("show")
    def show_(
        skill_id: SkillId,
        tools: Annotated[int, typer.Option(min=0, max=PAGE, help="Show so many of its items.")] = 0,
        as_json: AsJson = False,
    ) -> None:
        """Show one skill, and items that are in it."""

        async def found(skills: "SkillManagement") -> tuple[SkillEntry, list[Member]]:
            entry = await skills.taxonomy.find(skill_id)
            return entry, list(await skills.taxonomy.members(skill_id, 0, tools)) if tools else []

        from toolscript.service.skills import open_skills

        with open_skills() as ask:
            entry, members = ask(found)
        data = entry_to_json(entry)
        if tools:
            data["tools"] = [member_to_json(member) for member in members]
        show(data, skill_card(entry, members), as_json=as_json)

    @group.command()
    def of(item_id: ItemId, as_json: AsJson = False) -> None:
        """Show which skills an item is in."""
        from toolscript.service.skills import open_skills

        with open_skills() as ask:
            found = ask(lambda skills: skills.assignments.of(item_id))
        show(assigned_to_json(item_id, found), assigned_text(item_id, found), as_json=as_json)


def _history(group: typer.Typer) -> None:
    @group.command()
    def audit(
        before: Annotated[
            int | None, typer.Option(min=1, max=LARGEST_ID, help="Only what is older than this number.")
        ] = None,
        limit: Limit = 50,
        as_json: AsJson = False,
    ) -> None:
        """Show what people decided, latest first."""
        from toolscript.service.skills import open_skills

        with open_skills() as ask:
            found = ask(lambda skills: skills.taxonomy.audit(before, limit + 1))
        more = len(found) > limit
        entries = [audit_to_json(number, entry) for number, entry in found[:limit]]
        text = audit_table(found[:limit]) if entries else "nobody has decided anything"
        show({"entries": entries, "next": entries[-1]["id"] if more else None}, text, as_json=as_json)
        if more and not as_json:
            say(f"hint: `toolscript skills audit --before {entries[-1]['id']}` shows what is older")

    @group.command()
    def export(
        file: Annotated[Path | None, typer.Argument(help="File to write; none: standard output.")] = None,
    ) -> None:
        """Write all skills as JSON that `skills import` takes."""
        from toolscript.service.skills import export_skills

        count, text = export_skills(file)
        # It is data: in a file or a pipe it has to be what was stored.
        sys.stdout.write(text)
        say(f"{count:,} skills written" + (f" to {file}" if file else ""))


async def _all(skills: "SkillManagement", *, active_only: bool) -> list[SkillEntry]:
    # Imported here: help must not wait for what reads skills.
    from toolscript.sync.active_skills import all_skills

    return [entry async for entry in all_skills(skills.taxonomy, active_only=active_only)]
