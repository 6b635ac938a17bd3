"""Requests and responses about the rules of people: one model each for HTTP and `--json`."""

from collections.abc import Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from toolscript.core.retrieval.curation import MAX_LETTERS, Rule, RuleKind
from toolscript.core.web.fields import JsonId, Time, model_of
from toolscript.core.web.paging import Page
from toolscript.tools.model.curation import StoredRule
from toolscript.tools.schemas.skills import Audited, IntoNamespace, optional_field

WORDS = "Words that a request must have, in any order and in any form with the same stem."
MEANS = "What the words of a synonym mean: words of tools. Only for a synonym."
TOOL = "The tool that the rule is about; null for a synonym."
MUTUAL = "Whether a synonym works the other way, too."


class NewRule(Audited):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"kind": "synonym", "words": "PR", "means": "pull request", "on_behalf_of": "ann"}]
        }
    )

    kind: RuleKind = Field(description="`promote` a tool, a `synonym`, or a tool that is `never` returned.")
    words: str = Field(min_length=1, max_length=MAX_LETTERS, description=WORDS)
    tool_id: JsonId | None = Field(None, description=TOOL)
    means: str = Field("", max_length=MAX_LETTERS, description=MEANS)
    mutual: StrictBool = Field(False, description=MUTUAL)
    namespace: IntoNamespace = None

    def rule(self) -> Rule:
        return Rule(self.kind, self.words, self.tool_id, self.means, self.mutual)


class RuleChanges(Audited):
    """Changes of a rule. Omitted fields stay unchanged; the kind cannot change."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"words": "pull request", "on_behalf_of": "ann"}]})

    words: str = optional_field(min_length=1, max_length=MAX_LETTERS, description=WORDS)
    tool_id: JsonId = optional_field(1, description="The tool that the rule is about.")
    means: str = optional_field(min_length=1, max_length=MAX_LETTERS, description=MEANS)
    mutual: StrictBool = optional_field(False, description=MUTUAL)


class RuleShown(BaseModel):
    id: int = Field(description="Its id.")
    namespace: str = Field(description="The namespace whose searches it applies to.")
    kind: RuleKind = Field(description="`promote` a tool, a `synonym`, or a tool that is `never` returned.")
    words: str = Field(description=WORDS)
    tool_id: int | None = Field(description=TOOL)
    tool: str | None = Field(description="That tool, as `server__name`; null for a synonym.")
    means: str | None = Field(description="What the words of a synonym mean; null for other rules.")
    mutual: bool = Field(description=MUTUAL)
    created_at: Time = Field(description="Time when it was added.")
    updated_at: Time = Field(description="Time of its last change.")

    @classmethod
    def of(cls, stored: StoredRule) -> Self:
        rule = stored.rule
        return model_of(
            cls,
            stored,
            kind=rule.kind,
            words=rule.words,
            tool_id=rule.tool,
            tool=stored.tool_name or None,
            means=rule.means or None,
            mutual=rule.mutual,
        )


class RulePage(Page[RuleShown]):
    @classmethod
    def of_rules(cls, rules: Sequence[StoredRule], limit: int) -> Self:
        return cls.of(rules, limit, RuleShown.of, lambda rule: int(rule.id))
