"""`toolscript tools`: asks a running service for tools, or for its skill stage alone."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from toolscript.cli import tools_options as option
from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import json_text, say
from toolscript.cli.tools_absence import absence_text
from toolscript.cli.tools_catalog import add_catalog
from toolscript.cli.tools_text import (
    degraded_lines,
    doubt_lines,
    explained_text,
    hits_table,
    nothing_found_lines,
    routing_text,
    schemas_text,
    skills_table,
    timings_text,
)
from toolscript.model.queries import Strategy

if TYPE_CHECKING:
    from toolscript.model.results import ToolAnswer

NOTHING_FOUND = 1
NOTHING_SEARCHED = 2


def tool_commands() -> typer.Typer:
    group = typer.Typer(
        help="Tools of the service: search them in one that runs; list, show and remove them in its database.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    _search(group)
    _skills(group)
    add_catalog(group)
    return group


def _search(group: typer.Typer) -> None:
    @group.command()
    def search(
        query: option.Query,
        strategy: option.HowRouted = None,
        preset: option.Strictness = None,
        limit: option.Limit = None,
        kind: option.Kind = None,
        threshold: option.Threshold = None,
        skill_limit: option.SkillLimit = None,
        skill_threshold: option.SkillThreshold = None,
        search_type: option.Arms = None,
        schemas: option.WithSchemas = False,
        explain: option.Explain = False,
        why_not: option.WhyNot = None,
        url: option.Url = None,
        token: option.Token = None,
        timeout: option.Timeout = 30.0,
        as_json: AsJson = False,
    ) -> None:
        """Find tools by their skills, meaning and words. Exit code 1: nothing found."""
        from toolscript.service.asking import find_tools

        asked = _given(
            query=query,
            strategy=strategy,
            preset=preset,
            limit=limit,
            item_type=kind,
            tool_threshold=threshold,
            skill_limit=skill_limit,
            skill_threshold=skill_threshold,
            search_type=search_type,
            include_schemas=schemas,
            explain=explain,
            why_not=why_not,
        )
        answer, data = find_tools(asked, url=url, token=token, seconds=timeout)
        _print_json(data) if as_json else _show(answer, asked)
        if not answer.hits:
            raise typer.Exit(NOTHING_SEARCHED if answer.search_type_used == "none" else NOTHING_FOUND)


def _skills(group: typer.Typer) -> None:
    @group.command()
    def skills(
        query: option.Query,
        limit: option.SkillsShown = None,
        threshold: option.LeastSkillScore = None,
        search_type: option.Arms = None,
        url: option.Url = None,
        token: option.Token = None,
        timeout: option.Timeout = 30.0,
        as_json: AsJson = False,
    ) -> None:
        """Run the skill stage alone: at most `limit` skills, by vector first. Exit code 1: none matches."""
        from toolscript.service.asking import find_skills

        asked = _given(query=query, limit=limit, threshold=threshold, search_type=search_type)
        answer, data = find_skills(asked, url=url, token=token, seconds=timeout)
        if as_json:
            _print_json(data)
        elif answer.skills:
            sys.stdout.write(skills_table(answer.skills) + "\n")
        else:
            say("no skill matches: a search for tools would look at all items")
        for line in degraded_lines(answer.degraded):
            say(line)
        if not answer.skills:
            raise typer.Exit(NOTHING_FOUND)


def _show(answer: "ToolAnswer", asked: Mapping[str, object]) -> None:
    """What was found goes to stdout; how, and how far it can be believed, to stderr."""
    explain = bool(asked.get("explain"))
    say(routing_text(answer, wanted=asked.get("strategy", Strategy.HIERARCHICAL)))
    for line in degraded_lines(answer.degraded):
        say(line)
    if answer.hits:
        _show_hits(answer, explain=explain, schemas=bool(asked.get("include_schemas")))
    for line in doubt_lines(answer) if answer.hits else nothing_found_lines(answer):
        say(line)
    if explain:
        say(timings_text(answer.timings))
    if answer.absence is not None:
        sys.stdout.write(("\n" if answer.hits else "") + absence_text(answer.absence) + "\n")


def _show_hits(answer: "ToolAnswer", *, explain: bool, schemas: bool) -> None:
    sys.stdout.write(hits_table(answer.hits) + "\n")
    for hit in answer.hits if explain else ():
        sys.stdout.write(f"\n{explained_text(hit, answer.skills)}\n")
    for hit in answer.hits if schemas else ():
        sys.stdout.write(f"\n{schemas_text(hit)}\n")


def _given(**options: object) -> dict[str, object]:
    """What was not said is left to the service."""
    return {name: value for name, value in options.items() if value is not None}


def _print_json(data: object) -> None:
    sys.stdout.write(json_text(data) + "\n")
