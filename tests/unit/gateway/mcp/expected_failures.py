"""Expected failures of the conformance suite, with reasons. The list is exact: it has no passing checks."""

from collections.abc import Iterable

NAMED_TOOL = "calls a tool of the suite's own test server by its name; /mcp has others, which find and call it"
TOOLS_ONLY = "asks for prompts, resources, completion or logging; the service has tools only"
TASKS = "an extension of the protocol, which nothing requires; neither endpoint nor test server has tasks"


def _each(reason: str, scenarios: Iterable[str]) -> dict[str, str]:
    return dict.fromkeys(scenarios, reason)


_TASKS = _each(
    TASKS,
    (
        "tasks-lifecycle",
        "tasks-capability-negotiation",
        "tasks-wire-fields",
        "tasks-request-state-removal",
        "tasks-mrtr-input",
        "tasks-request-headers",
        "tasks-dispatch-and-envelope",
        "tasks-required-task-error",
        "tasks-mrtr-composition",
    ),
)
_NAMED_TOOLS = _each(
    NAMED_TOOL,
    (
        "tools-call-simple-text",
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-error",
        "tools-call-with-progress",
    ),
)
_NOT_TOOLS = _each(
    TOOLS_ONLY,
    (
        "completion-complete",
        "resources-list",
        "resources-read-text",
        "resources-read-binary",
        "resources-templates-read",
        "prompts-list",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-embedded-resource",
        "prompts-get-with-image",
    ),
)

# At /mcp/{server}, which has the server's own names.
THROUGH_THE_GATEWAY: dict[str, str] = {**_TASKS}

# At /mcp/all, which lists its tools as server__tool.
ALL_TOOLS: dict[str, str] = {
    **_TASKS,
    "json-schema-2020-12": "looks for a tool in the list by its bare name, which only calls accept",
}
# At /mcp, with the suite's server as the only one behind it.
JOINT_ENDPOINT: dict[str, str] = {
    **_TASKS,
    **_NAMED_TOOLS,
    **_each(
        NAMED_TOOL,
        (
            "input-required-result-basic-elicitation",
            "input-required-result-basic-sampling",
            "input-required-result-basic-list-roots",
            "input-required-result-request-state",
            "input-required-result-multiple-input-requests",
            "input-required-result-multi-round",
            "input-required-result-result-type",
            "input-required-result-tampered-state",
            "input-required-result-capability-check",
            "json-schema-2020-12",
            "http-custom-header-server-validation",
        ),
    ),
    "server-stateless": "4 of its checks call diagnostic tools of the suite's own test server; the others pass",
}
_JOINT_2025 = {
    **_NAMED_TOOLS,
    **_each(NAMED_TOOL, ("tools-call-sampling", "tools-call-elicitation", "tools-call-with-logging")),
}
JOINT_ENDPOINT_OLD: dict[str, dict[str, str]] = {
    "2025-06-18": _JOINT_2025,
    "2025-11-25": {
        **_JOINT_2025,
        **_each(NAMED_TOOL, ("elicitation-sep1034-defaults", "elicitation-sep1330-enums")),
    },
}

# At the service's /mcp, which has only tools, and none of the suite's.
SERVICE_TOOLS: dict[str, str] = {
    **JOINT_ENDPOINT,
    **_NOT_TOOLS,
    **_each(TOOLS_ONLY, ("input-required-result-non-tool-request", "caching")),
}
SERVICE_TOOLS_OLD: dict[str, dict[str, str]] = {
    version: {
        **failures,
        **_NOT_TOOLS,
        **_each(
            TOOLS_ONLY,
            ("logging-set-level", "tools-call-with-logging", "resources-subscribe", "resources-unsubscribe"),
        ),
    }
    for version, failures in JOINT_ENDPOINT_OLD.items()
}
