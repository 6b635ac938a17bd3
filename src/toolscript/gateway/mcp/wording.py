"""What a model reads of our errors and hints. Commands, options and config files are for the user, whom it asks.

Every message of the meta-tools passes through here.
"""

import re
from collections.abc import Awaitable, Callable

from toolscript.core.errors import Forbidden, ToolscriptError
from toolscript.core.mcp import answers
from toolscript.core.mcp_client.model import CallResult
from toolscript.gateway.approvals import HELD, for_agents

ASK_USER = "ask the user to look after it"

# Why a model is not used, to the end of what is said about it.
_NOTE = r"[^;]*(?:; (?:it |--model)[^;]*)*"
# What is said instead, for the advice that a model meets often. First to last.
_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), wording)
    for pattern, wording in (
        (
            r"`toolscript config import` imports those of your other clients, or shows how to write \S+",
            "ask the user to connect some",
        ),
        (r"`toolscript list-servers` shows how they are doing, ", ""),
        (
            r"a person must review it: `toolscript trust [^`]*` in a terminal",
            "ask the user to review and trust them",
        ),
        (r"only a person can sign in: `toolscript login ([^ `]+)[^`]*`", r"ask the user to sign in to \1"),
        (r"; tried ([^,;()]*), `search --refresh` tries again", r"; tried \1"),
        (r"(tools as they were [^,;]*); --refresh queries the servers again", r"\1"),
        (
            r"; a person can change the rule, and `toolscript rules test [^`]*` explains it",
            "; only the user can change the rule",
        ),
        (
            r"ask the person to allow it by a rule, or to make the call in a terminal with `toolscript call`",
            "ask the user to allow it, or to do it themselves",
        ),
        (r"raise callTimeout of \S+, or ask", "ask"),
        (r"`toolscript doctor` says how to fix it", "ask the user to repair it"),
        (r"`toolscript gateway status` shows its state", "ask the user to start it again"),
        (
            r"name servers and server__tool; `toolscript list-tools` lists them",
            "search_tools finds the names there are",
        ),
        (r"write server__tool, as search results do", "write server__tool, as search_tools does"),
        (
            r"the config file (?:excludes|leaves) (\S+) of (\S+)(?: out| \(includeTools, excludeTools\))",
            r"the user has turned \1 of \2 off",
        ),
        (r", or set TOOLSCRIPT_SEARCH_MODEL=\w+", ""),
        (rf"(?:; |^)ranked by the built-in model: {_NOTE}", ""),
        (rf"keyword search only: {_NOTE}", "keyword search only"),
        (r"the servers of \S*\.toolscript\.json\S*", "the servers of this project"),
        (r"[\w./\\~:-]*\.toolscript\.json", "the user's config"),
    )
)
# Only a person has these. A server's own words may have options, too, but not ours.
_OPTIONS = (
    "threshold|refresh|alone|data-dir|model|config|port|clear|http|background|yes|explain|kind|limit|search-type"
)
FOR_A_PERSON = re.compile(
    rf"\btoolscript [a-z-]+|(?<![\w-])--(?:{_OPTIONS})\b|TOOLSCRIPT_[A-Z]|\.toolscript\b|pip install|in a terminal"
    r"|\b(?:includeTools|excludeTools|callTimeout|startupTimeout|docs/\w+\.md)\b"
)


def for_agent(text: str) -> str:
    """Return a message without what only a person can do: a model would try it, or tell the user to be patient."""
    for pattern, wording in _PHRASES:
        text = pattern.sub(wording, text)
    if not FOR_A_PERSON.search(text):
        return text.strip("; ")
    clauses = [
        ASK_USER + _closing(clause) if FOR_A_PERSON.search(clause) else clause for clause in text.split("; ")
    ]
    wording = "; ".join(dict.fromkeys(clauses))
    # Where the clause that opened a bracket is gone.
    return wording.removesuffix(")") if wording.count(")") > wording.count("(") else wording


def _closing(clause: str) -> str:
    """Return the brackets that a clause closes and did not open."""
    return ")" * max(0, clause.count(")") - clause.count("("))


def in_agent_words(error: ToolscriptError) -> ToolscriptError:
    """Return the same error, with a message and a hint for a model."""
    error.message, error.hint = for_agent(error.message), for_agent(error.hint)
    return error


def failed(error: ToolscriptError) -> CallResult:
    return answers.failed(in_agent_words(error))


def refused(refusal: Forbidden) -> CallResult:
    """Return what a model reads of a refusal that is final. What is held only the user can release."""
    return answers.failed_with(for_agents(refusal.message)) if HELD in refusal.details else failed(refusal)


async def answered(
    answer: Callable[[], Awaitable[CallResult]], but_for: tuple[type[ToolscriptError], ...] = ()
) -> CallResult:
    return await answers.answered(answer, but_for, failed)
