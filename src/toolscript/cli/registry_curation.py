"""`toolscript tools curation`: rules by which people correct the search of a service."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.curation import Mutual, Words, rule_object
from toolscript.cli.options import AsJson, By, ItemId, OnlyNamespace, PageCursor, PageLimit, person, seen_of
from toolscript.cli.output import show, show_page, table_by_namespace
from toolscript.core.items import MAX_ID
from toolscript.core.namespaces import DEFAULT_NAMESPACE, valid_namespace

if TYPE_CHECKING:
    from toolscript.core.retrieval.curation import Rule
    from toolscript.tools.model.curation import StoredRule

RuleId = Annotated[int, typer.Argument(metavar="ID", min=1, max=MAX_ID, help="Number of a rule.")]
InNamespace = Annotated[str, typer.Option("--namespace", metavar="NAME", help="Namespace that it applies to.")]


def registry_curation_commands() -> typer.Typer:
    group = typer.Typer(
        help="Rules for searches of the service: promotions, synonyms, and tools never for a request.",
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
    def list_(
        namespace: OnlyNamespace = None,
        cursor: PageCursor = "",
        limit: PageLimit = 50,
        as_json: AsJson = False,
    ) -> None:
        """List the rules in order of number."""
        from toolscript.core.web.cursors import decode_cursor
        from toolscript.server.curation import with_rules
        from toolscript.tools.schemas.curation import RulePage

        after, seen = decode_cursor(cursor, 0), seen_of(namespace)
        rules = with_rules(lambda rules: rules.within(seen).page(after, limit + 1))
        page = RulePage.of_rules(rules, limit)
        show_page(page, _table(rules[:limit]), page.next_cursor, as_json=as_json, option="--cursor")


def _about_tools(group: typer.Typer) -> None:
    @group.command()
    def promote(
        item_id: ItemId,
        words: Words,
        namespace: InNamespace = DEFAULT_NAMESPACE,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Put a tool first for requests that have these words."""
        from toolscript.core.retrieval.curation import Rule, RuleKind

        _add(Rule(RuleKind.PROMOTE, words, item_id), namespace, by, as_json=as_json)

    @group.command()
    def never(
        item_id: ItemId,
        words: Words,
        namespace: InNamespace = DEFAULT_NAMESPACE,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Never return a tool for requests that have these words."""
        from toolscript.core.retrieval.curation import Rule, RuleKind

        _add(Rule(RuleKind.NEVER, words, item_id), namespace, by, as_json=as_json)


def _synonym(group: typer.Typer) -> None:
    @group.command()
    def synonym(
        words: Words,
        means: Annotated[str, typer.Argument(help="The words of tools that they mean.")],
        mutual: Mutual = False,
        namespace: InNamespace = DEFAULT_NAMESPACE,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Say what words mean: `synonym PR "pull request"`."""
        from toolscript.core.retrieval.curation import Rule, RuleKind

        rule = Rule(RuleKind.SYNONYM, words, means=means, mutual=mutual)
        _add(rule, namespace, by, as_json=as_json)


def _remove(group: typer.Typer) -> None:
    @group.command()
    def remove(rule_id: RuleId, by: By = None, as_json: AsJson = False) -> None:
        """Remove a rule."""
        from toolscript.server.curation import with_rules

        with_rules(lambda rules: rules.remove(rule_id, person(by)))
        show({"removed": rule_id}, f"rule {rule_id} removed", as_json=as_json)


def _add(rule: "Rule", namespace: str, by: str | None, *, as_json: bool) -> None:
    from toolscript.server.curation import with_rules
    from toolscript.tools.schemas.curation import RuleShown

    added = with_rules(lambda rules: rules.add(rule, person(by), valid_namespace(namespace)))
    about = f"{added.tool_name} is " if added.tool_name else ""
    show(RuleShown.of(added), f"rule {added.id} added: {about}{rule.reason}", as_json=as_json)


def _table(rules: "Sequence[StoredRule]") -> str:
    if not rules:
        return "there is no rule"
    rows = [
        [str(stored.id), stored.rule.kind, stored.rule.words, stored.tool_name or rule_object(stored.rule)]
        for stored in rules
    ]
    return table_by_namespace(
        ["Id", "Kind", "Words", "Tool or meaning"], rows, [stored.namespace for stored in rules]
    )
