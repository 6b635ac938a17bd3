"""`toolscript rules`: which rules decide about calls, and which one decides about a call of a tool."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolscript.cli.options import Alone, AsJson, ConfigFile, DataDir, flags
from toolscript.cli.output import colour_wanted, printable, progress, say, show, table

if TYPE_CHECKING:
    from toolscript.core.items import Item
    from toolscript.gateway.approvals import Review
    from toolscript.gateway.model import Gateway
    from toolscript.gateway.rules import Rule


def rules_commands() -> typer.Typer:
    group = typer.Typer(
        help="Rules for calls: which are made, which ask a person, and which are denied.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    _list(group)
    _test(group)
    return group


def _list(group: typer.Typer) -> None:
    @group.command("list")
    def list_(config: ConfigFile = None, as_json: AsJson = False) -> None:
        """List the rules for calls: your own, then those of the project, which can only be stricter."""
        own, of_project, problems = _rules(config)
        for problem in problems:
            say(f"warning: {problem}")
        data = {"own": list(map(_data, own)), "project": list(map(_data, of_project))}
        rows = [_row(rule) for rule in (*own, *of_project)]
        text = table(["Tools", "Risk", "Client", "Effect", "From"], rows, colour=colour_wanted())
        show(data, text if rows else "there is no rule: every call is made", as_json=as_json)


def _test(group: typer.Typer) -> None:
    @group.command()
    def test(
        tool: Annotated[str, typer.Argument(help="The tool, as server__tool.")],
        client: Annotated[str, typer.Option(help="Name of the client, such as `claude-code`.")] = "cli",
        config: ConfigFile = None,
        data_dir: DataDir = None,
        alone: Alone = False,
        as_json: AsJson = False,
    ) -> None:
        """Show what happens to a call of a tool, and which rule decides. Nothing is called."""
        from toolscript.gateway.rules import CallRules

        own, of_project, _ = _rules(config)
        item, review = _item(tool, flags(config=config, data_dir=data_dir, alone=alone))
        decision = CallRules(own, of_project, lambda _item: review is None).decide(item, client)
        data = {
            "tool": tool,
            "client": client,
            "effect": decision.effect.value,
            "rule": decision.reason,
            "risk": decision.risk.to_json(),
            **({"held": review.status.value} if review is not None and review.held else {}),
        }
        text = f"{decision.effect}: {decision.reason}\nrisk: {decision.risk.shown}"
        show(data, text, as_json=as_json)


def _rules(config: "ConfigFile") -> tuple[list["Rule"], list["Rule"], Sequence[object]]:
    from toolscript.gateway.config.rules import call_rules_of
    from toolscript.gateway.discovery import place_of
    from toolscript.gateway.settings import environment, load_gateway_settings

    return call_rules_of(place_of(load_gateway_settings(flags(config=config))).read(environment()))


def _item(tool: str, options: dict[str, object]) -> tuple["Item", "Review | None"]:
    """Return the tool as the gateway lists it, and its review if it is not approved.

    One that is not listed claims nothing.
    """
    from toolscript.core.items import Item, ItemKind, split_tool_id, tool_id
    from toolscript.gateway.approvals import held_message
    from toolscript.gateway.model import Need
    from toolscript.gateway.session import ask

    server, name = split_tool_id(tool)

    async def listed(gateway: "Gateway") -> Any:
        named = tool_id(server, name), ItemKind.TOOL.value
        waiting = [review for review in await gateway.reviews() if (review.tool, review.kind) == named]
        return await gateway.items((tool_id(server, name),)), next(iter(waiting), None)

    with progress() as on_progress:
        items, review = ask(listed, flags=options, need=Need(model=False), on_progress=on_progress, on_start=say)
    for item in items:
        if item.kind is ItemKind.TOOL:
            return item, review
    why = f"{held_message(review)}, so it is not called" if review else f"no server offers {tool}"
    say(f"{printable(why)}; rules judge it by its name alone")
    return Item(tool_id(server, name), ItemKind.TOOL, server, name), review


def _effect(rule: "Rule") -> str:
    return f"is {rule.states}" if rule.states else str(rule.do)


def _row(rule: "Rule") -> list[str]:
    return [
        rule.tools,
        rule.risk or "any",
        rule.client,
        _effect(rule),
        f"{rule.place}{rule.problem and f': {rule.problem}'}",
    ]


def _data(rule: "Rule") -> dict[str, object]:
    fields = {
        "tools": rule.tools,
        "risk": rule.risk and rule.risk.value,
        "client": rule.client,
        "do": rule.do and rule.do.value,
        "is": rule.states and rule.states.value,
        "place": rule.place,
        "problem": rule.problem,
    }
    return {key: value for key, value in fields.items() if value}
