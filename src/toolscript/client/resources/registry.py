"""The registry of a service: skills, suggestions, rules, searches, changes, sources, jobs and the audit log.

What writes needs an administrator.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from toolscript.client.answers.registry import (
    AuditEntry,
    Change,
    ChangeCompared,
    CurationRule,
    GapReport,
    Job,
    LoggedSearch,
    Skill,
    SkillSearchAnswer,
    SkillWritten,
    Suggestion,
    SuggestionDecided,
    SuggestionEvidence,
    ToolOfSkill,
    ToolSource,
)
from toolscript.client.exchange import Request, Steps
from toolscript.client.resource import PREFIX, Listing, M_co, Resource, listing, operation, query_of, step_of
from toolscript.client.resources.tools import SearchType

SKILLS, SUGGESTIONS, CHANGES = f"{PREFIX}/skills", f"{PREFIX}/suggestions", f"{PREFIX}/changes"
CURATION = f"{PREFIX}/curation"
SEARCHES = f"{PREFIX}/tool_searches"
SOURCES, JOBS, AUDIT = f"{PREFIX}/sources", f"{PREFIX}/jobs", f"{PREFIX}/audit"

SuggestionState = Literal["pending", "approved", "rejected", "merged"]
ChangeState = Literal["applied", "held", "approved", "rejected", "withdrawn"]


class Skills(Resource[M_co]):
    @operation
    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        threshold: float | None = None,
        search_type: SearchType | None = None,
        namespaces: Sequence[str] | None = None,
    ) -> Steps[SkillSearchAnswer]:
        """Find the skills that a tool search would be routed to."""
        seen = None if namespaces is None else list(namespaces)
        options = {"limit": limit, "threshold": threshold, "search_type": search_type, "namespaces": seen}
        body = {"query": query, **options}
        return self._ask("POST", f"{SKILLS}/search", SkillSearchAnswer, body=body)

    @listing
    def list(
        self, *, active: bool | None = None, page_size: int | None = None, cursor: str = ""
    ) -> Listing[Skill]:
        """List skills; `active=True`: only those that searches are routed to."""
        return self._listing(SKILLS, Skill, page_size, cursor, active=active)

    @operation
    def get(self, skill_id: str) -> Steps[Skill]:
        """Return a skill."""
        return self._ask("GET", f"{SKILLS}/{step_of(skill_id)}", Skill)

    @operation
    def add(self, skill: Mapping[str, Any]) -> Steps[SkillWritten]:
        """Add a skill: `id`, `name`, and as wanted `description`, `keywords`, `examples`, `parent_domain`."""
        return self._ask("POST", SKILLS, SkillWritten, body=skill, idempotent=False, with_null=True)

    @operation
    def replace(self, skill_id: str, skill: Mapping[str, Any]) -> Steps[SkillWritten]:
        """Replace a skill; a field that is left out gets its default."""
        path = f"{SKILLS}/{step_of(skill_id)}"
        return self._ask("PUT", path, SkillWritten, body=skill, with_null=True)

    @operation
    def change(self, skill_id: str, changes: Mapping[str, Any]) -> Steps[SkillWritten]:
        """Change a skill; a field that is left out stays."""
        path = f"{SKILLS}/{step_of(skill_id)}"
        return self._ask("PATCH", path, SkillWritten, body=changes, with_null=True)

    @listing
    def list_tools(self, skill_id: str, *, page_size: int | None = None, cursor: str = "") -> Listing[ToolOfSkill]:
        """List the tools of a skill."""
        return self._listing(f"{SKILLS}/{step_of(skill_id)}/tools", ToolOfSkill, page_size, cursor)


class Suggestions(Resource[M_co]):
    @listing
    def list(
        self,
        *,
        state: SuggestionState | None = None,
        namespace: str | None = None,
        page_size: int | None = None,
        cursor: str = "",
    ) -> Listing[Suggestion]:
        """List skills that the classifier suggests; by default those that nobody has decided yet."""
        return self._listing(SUGGESTIONS, Suggestion, page_size, cursor, state=state, namespace=namespace)

    @operation
    def get(
        self, suggestion_id: int, *, page_size: int | None = None, cursor: str = ""
    ) -> Steps[SuggestionEvidence]:
        """Return a suggestion with one page of its tools; its `next_cursor` is the `cursor` of the next page."""
        query = {"limit": page_size, "cursor": cursor or None}
        return self._ask("GET", f"{SUGGESTIONS}/{step_of(suggestion_id)}", SuggestionEvidence, query=query)

    @operation
    def approve(
        self, suggestion_id: int, *, on_behalf_of: str | None = None, skill: Mapping[str, Any] | None = None
    ) -> Steps[SuggestionDecided]:
        """Make a skill of a suggestion; `skill` has other fields for it, such as `id` and `name`."""
        body = {"on_behalf_of": on_behalf_of, "skill": None if skill is None else dict(skill)}
        path = f"{SUGGESTIONS}/{step_of(suggestion_id)}/approve"
        return self._ask("POST", path, SuggestionDecided, body=body, idempotent=False)

    @operation
    def reject(self, suggestion_id: int, *, on_behalf_of: str | None = None) -> Steps[Suggestion]:
        """Reject a suggestion."""
        path = f"{SUGGESTIONS}/{step_of(suggestion_id)}/reject"
        return self._ask("POST", path, Suggestion, body={"on_behalf_of": on_behalf_of}, idempotent=False)

    @operation
    def merge(self, suggestion_id: int, *, into: str, on_behalf_of: str | None = None) -> Steps[Suggestion]:
        """Give the tools of a suggestion to a skill that exists."""
        path, body = f"{SUGGESTIONS}/{step_of(suggestion_id)}/merge", {"on_behalf_of": on_behalf_of, "into": into}
        return self._ask("POST", path, Suggestion, body=body, idempotent=False)

    @operation
    def undo(self, suggestion_id: int, *, reviewer: str) -> Steps[SuggestionDecided]:
        """Undo an approved proposal: its skill is deactivated, and its tools are classified again."""
        path = f"{SUGGESTIONS}/{step_of(suggestion_id)}/undo"
        return self._ask("POST", path, SuggestionDecided, body={"reviewer": reviewer}, idempotent=False)


class Curation(Resource[M_co]):
    """Rules of people: which tool comes first or never for a request, and what words mean."""

    @listing
    def list(
        self, *, namespace: str | None = None, page_size: int | None = None, cursor: str = ""
    ) -> Listing[CurationRule]:
        """List the rules."""
        return self._listing(CURATION, CurationRule, page_size, cursor, namespace=namespace)

    @operation
    def get(self, rule_id: int) -> Steps[CurationRule]:
        """Return a rule."""
        return self._ask("GET", f"{CURATION}/{step_of(rule_id)}", CurationRule)

    @operation
    def promote(
        self, tool_id: int, words: str, *, namespace: str | None = None, on_behalf_of: str | None = None
    ) -> Steps[CurationRule]:
        """Put a tool first for requests that have these words."""
        body = {"kind": "promote", "tool_id": tool_id, "words": words, "on_behalf_of": on_behalf_of}
        return self._add(body, namespace)

    @operation
    def never(
        self, tool_id: int, words: str, *, namespace: str | None = None, on_behalf_of: str | None = None
    ) -> Steps[CurationRule]:
        """Never return a tool for requests that have these words."""
        body = {"kind": "never", "tool_id": tool_id, "words": words, "on_behalf_of": on_behalf_of}
        return self._add(body, namespace)

    @operation
    def synonym(
        self,
        words: str,
        means: str,
        *,
        mutual: bool = False,
        namespace: str | None = None,
        on_behalf_of: str | None = None,
    ) -> Steps[CurationRule]:
        """Say what words mean; a mutual synonym works the other way, too."""
        body = {"kind": "synonym", "words": words, "means": means, "mutual": mutual, "on_behalf_of": on_behalf_of}
        return self._add(body, namespace)

    @operation
    def change(self, rule_id: int, changes: Mapping[str, Any]) -> Steps[CurationRule]:
        """Change a rule; a field that is left out stays."""
        return self._ask("PATCH", f"{CURATION}/{step_of(rule_id)}", CurationRule, body=changes)

    @operation
    def delete(self, rule_id: int, *, on_behalf_of: str | None = None) -> Steps[None]:
        """Delete a rule."""
        path = f"{CURATION}/{step_of(rule_id)}{query_of({'on_behalf_of': on_behalf_of})}"
        return self._conversation.ask(Request("DELETE", path, idempotent=False), lambda _: None)

    def _add(self, body: Mapping[str, Any], namespace: str | None) -> Steps[CurationRule]:
        return self._ask("POST", CURATION, CurationRule, body={**body, "namespace": namespace}, idempotent=False)


class Searches(Resource[M_co]):
    """The log of tool searches, where the service keeps one."""

    @listing
    def list(
        self,
        *,
        days: int | None = None,
        good_match: bool | None = None,
        namespace: str | None = None,
        page_size: int | None = None,
        cursor: str = "",
    ) -> Listing[LoggedSearch]:
        """List the searches of the last days, the latest first; `good_match` for those with or without one."""
        filters = {"days": days, "good_match": good_match, "namespace": namespace}
        return self._listing(SEARCHES, LoggedSearch, page_size, cursor, **filters)

    @operation
    def gaps(
        self, *, days: int | None = None, limit: int | None = None, namespace: str | None = None
    ) -> Steps[GapReport]:
        """Return the most frequent requests of the last days without a good match."""
        query = {"days": days, "limit": limit, "namespace": namespace}
        return self._ask("GET", f"{SEARCHES}/gaps", GapReport, query=query)


class Changes(Resource[M_co]):
    @listing
    def list(
        self,
        *,
        state: ChangeState | None = None,
        namespace: str | None = None,
        page_size: int | None = None,
        cursor: str = "",
    ) -> Listing[Change]:
        """List changed definitions of tools."""
        return self._listing(CHANGES, Change, page_size, cursor, state=state, namespace=namespace)

    @operation
    def get(self, change_id: int) -> Steps[ChangeCompared]:
        """Return a change with the old and the new definition."""
        return self._ask("GET", f"{CHANGES}/{step_of(change_id)}", ChangeCompared)

    @operation
    def approve(self, change_id: int, *, on_behalf_of: str | None = None) -> Steps[Change]:
        """Let a held change take effect."""
        path = f"{CHANGES}/{step_of(change_id)}/approve"
        return self._ask("POST", path, Change, body={"on_behalf_of": on_behalf_of}, idempotent=False)

    @operation
    def reject(self, change_id: int, *, on_behalf_of: str | None = None) -> Steps[Change]:
        """Keep the old definition."""
        path = f"{CHANGES}/{step_of(change_id)}/reject"
        return self._ask("POST", path, Change, body={"on_behalf_of": on_behalf_of}, idempotent=False)


class Sources(Resource[M_co]):
    @listing
    def list(
        self, *, namespace: str | None = None, page_size: int | None = None, cursor: str = ""
    ) -> Listing[ToolSource]:
        """List the sources of the catalog."""
        return self._listing(SOURCES, ToolSource, page_size, cursor, namespace=namespace)

    @operation
    def get(self, name: str, *, namespace: str | None = None) -> Steps[ToolSource]:
        """Return a source."""
        return self._ask("GET", f"{SOURCES}/{step_of(name)}", ToolSource, query={"namespace": namespace})

    @operation
    def delete(self, name: str, *, namespace: str | None = None) -> Steps[Job]:
        """Start a job that removes a source and its tools."""
        query = {"namespace": namespace}
        return self._ask("DELETE", f"{SOURCES}/{step_of(name)}", Job, query=query, idempotent=False)


class Jobs(Resource[M_co]):
    @operation
    def start_import(
        self,
        source: str,
        items: Sequence[Mapping[str, Any]],
        *,
        prune: bool = False,
        namespace: str | None = None,
    ) -> Steps[Job]:
        """Start a job that imports items; `prune` removes those of the source that are not among them."""
        entries = [dict(item) for item in items]
        body = {"source": source, "items": entries, "prune": prune, "namespace": namespace}
        return self._ask("POST", JOBS, Job, body=body, idempotent=False)

    @operation
    def start_sync(self, servers: Sequence[str] = (), *, namespace: str | None = None) -> Steps[Job]:
        """Start a job that asks MCP servers of the service's config file for their tools; none: all of them."""
        body = {"servers": [*servers], "namespace": namespace}
        return self._ask("POST", JOBS, Job, body=body, idempotent=False)

    @listing
    def list(
        self, *, namespace: str | None = None, page_size: int | None = None, cursor: str = ""
    ) -> Listing[Job]:
        """List jobs, the newest first."""
        return self._listing(JOBS, Job, page_size, cursor, namespace=namespace)

    @operation
    def get(self, job_id: int) -> Steps[Job]:
        """Return a job."""
        return self._ask("GET", f"{JOBS}/{step_of(job_id)}", Job)


class Audit(Resource[M_co]):
    @listing
    def list(
        self, *, namespace: str | None = None, page_size: int | None = None, cursor: str = ""
    ) -> Listing[AuditEntry]:
        """List who decided what, the newest first."""
        return self._listing(AUDIT, AuditEntry, page_size, cursor, namespace=namespace)
