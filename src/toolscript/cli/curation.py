"""`toolscript curation`: rules by which a person corrects the gateway's search."""

from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import AsJson, ConfigFile, flags
from toolscript.cli.output import colour_wanted, require_person, say, show, table

if TYPE_CHECKING:
    from toolscript.core.retrieval.curation import Rule

Words = Annotated[str, typer.Argument(help="Words that a request must have, in any form and order.")]
Tool = Annotated[str, typer.Argument(help="The tool, as server__tool.")]
Mutual = Annotated[bool, typer.Option("--mutual", help="The other way, too.")]


def curation_commands() -> typer.Typer:
    group = typer.Typer(
        help="Rules for your searches: promotions, synonyms, and tools never for a request.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    _list(group)
    _about_tools(group)
    _synonym(group)
    _remove(group)
    return group


def _list(group: typer.Typer) -> None:
    @group.command("list")
    def list_(config: ConfigFile = None, as_json: AsJson = False) -> None:
        """List the rules of your config file, each with its number."""
        from toolscript.gateway.config.curation import rule_to_json
        from toolscript.gateway.curation import rule_file

        file = rule_file(flags(config=config))
        rules, problems = file.read()
        for problem in problems:
            say(f"warning: {problem}")
        data = {
            "file": str(file.path),
            "rules": [{"number": numbered.number, **rule_to_json(numbered.rule)} for numbered in rules],
        }
        rows = [[str(number), rule.kind, rule.words, rule_object(rule)] for number, rule in rules]
        text = table(["", "Kind", "Words", "Tool or meaning"], rows, colour=colour_wanted())
        show(data, text if rows else f"there is no rule in {file.path}", as_json=as_json)


def _about_tools(group: typer.Typer) -> None:
    @group.command()
    def promote(tool: Tool, words: Words, config: ConfigFile = None, as_json: AsJson = False) -> None:
        """Put a tool first for requests that have these words."""
        _add({"kind": "promote", "tool": tool, "words": words}, config, as_json=as_json)

    @group.command()
    def never(tool: Tool, words: Words, config: ConfigFile = None, as_json: AsJson = False) -> None:
        """Never return a tool for requests that have these words."""
        _add({"kind": "never", "tool": tool, "words": words}, config, as_json=as_json)


def _synonym(group: typer.Typer) -> None:
    @group.command()
    def synonym(
        words: Words,
        means: Annotated[str, typer.Argument(help="The words of tools that they mean.")],
        mutual: Mutual = False,
        config: ConfigFile = None,
        as_json: AsJson = False,
    ) -> None:
        """Say what words mean: `synonym PR "pull request"`."""
        _add({"kind": "synonym", "words": words, "means": means, "mutual": mutual}, config, as_json=as_json)


def _remove(group: typer.Typer) -> None:
    @group.command()
    def remove(
        number: Annotated[int, typer.Argument(min=1, help="Number of the rule in `curation list`.")],
        config: ConfigFile = None,
        as_json: AsJson = False,
    ) -> None:
        """Remove a rule."""
        from toolscript.gateway.config.curation import rule_to_json
        from toolscript.gateway.curation import remove_rule

        require_person("a rule", f"toolscript curation remove {number}")
        file, rule = remove_rule(flags(config=config), number)
        data = {"file": str(file.path), "removed": rule_to_json(rule)}
        show(data, f"removed from {file.path}: {described(rule)}", as_json=as_json)


def _add(written: dict[str, object], config: "ConfigFile", *, as_json: bool) -> None:
    from toolscript.gateway.config.curation import rule_of, rule_to_json
    from toolscript.gateway.curation import add_rule

    rule = rule_of(written)
    require_person("a rule", f"toolscript curation {rule.kind}")
    file = add_rule(flags(config=config), rule)
    show(
        {"file": str(file.path), "added": rule_to_json(rule)},
        f"added to {file.path}: {described(rule)}",
        as_json=as_json,
    )


def described(rule: "Rule") -> str:
    return rule.reason if rule.tool is None else f"{rule.tool} is {rule.reason}"


def rule_object(rule: "Rule") -> str:
    """Return the tool that a rule is about, or what its words mean."""
    return str(rule.tool) if rule.tool is not None else rule.means + " (mutual)" * rule.mutual
