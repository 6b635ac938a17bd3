"""Commands on the curation of a config file: list, add and remove rules. Comments in the file stay."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolscript.core.errors import ConfigInvalid, Conflict, NotFound
from toolscript.core.retrieval.curation import MAX_RULES, Rule, too_many_rules
from toolscript.gateway.config.curation import NumberedRule, read_rules, rule_to_json
from toolscript.gateway.config.importing import backup_of
from toolscript.gateway.config.jsonc import parse, read_text
from toolscript.gateway.config.problems import Problem
from toolscript.gateway.config.read import CURATION, named_file
from toolscript.gateway.config.write import replace_text, with_item, without_item
from toolscript.gateway.discovery import place_of
from toolscript.gateway.settings import load_gateway_settings


@dataclass(frozen=True)
class RuleFile:
    """The file that has the rules of a user: the config file, or the one that its `curation` names.

    `section` is None in the latter, which is a list.
    """

    path: Path
    section: str | None
    text: str | None

    def read(self) -> tuple[list[NumberedRule], list[Problem]]:
        if self.text is None:
            return [], []
        value = parse(self.text, self.path).value
        raw = value.get(self.section, []) if self.section and isinstance(value, dict) else value
        return read_rules(raw, self.path)

    def replace(self, after: str) -> None:
        replace_text(self.path, self.text, after, backup=backup_of(self.path))


def rule_file(flags: Mapping[str, object]) -> RuleFile:
    """Return the file of the user's rules, not of a project's."""
    config = place_of(load_gateway_settings(flags)).paths()[0]
    text = read_text(config, only_ours=True)
    value = {} if text is None else parse(text, config).value
    if not isinstance(value, dict):
        raise ConfigInvalid(f"{config} is not a JSON object", hint='write {"mcpServers": {}}')
    if isinstance(named := value.get(CURATION), str):
        file = named_file(named, config)
        return RuleFile(file, None, read_text(file, only_ours=True))
    return RuleFile(config, CURATION, text)


def add_rule(flags: Mapping[str, object], rule: Rule) -> RuleFile:
    file = rule_file(flags)
    rules, _ = file.read()
    if any(numbered.rule == rule for numbered in rules):
        raise Conflict("there is this rule already", hint="`toolscript curation list` shows it")
    if len(rules) >= MAX_RULES:
        raise too_many_rules()
    file.replace(with_item(file.text or "", file.section, rule_to_json(rule), file.path))
    return file


def remove_rule(flags: Mapping[str, object], number: int) -> tuple[RuleFile, Rule]:
    file = rule_file(flags)
    rules, _ = file.read()
    found = next((numbered.rule for numbered in rules if numbered.number == number), None)
    if found is None or file.text is None:
        raise NotFound(f"there is no rule {number}", hint="`toolscript curation list` shows the numbers")
    file.replace(without_item(file.text, file.section, number - 1, file.path))
    return file, found
