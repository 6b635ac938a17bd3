"""Lists and static contents of the conformance test server."""

from typing import Any

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image() -> dict[str, Any]:
    return {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def embedded(uri: str, mime: str, words: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": words}}


CONTENT: dict[str, list[dict[str, Any]]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image()],
    "test_audio_content": [{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}],
    "test_embedded_resource": [embedded("test://embedded-resource", "text/plain", "Embedded.")],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
}
OTHER_TOOLS = (
    "test_error_handling",
    "test_tool_with_progress",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_sampling",
    "test_elicitation",
    "test_tool_with_logging",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
)
FULL_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"city": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string"},
        "phone": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["name"]}]}],
    "if": {"required": ["phone"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["name"]},
    "additionalProperties": False,
}
HEADER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}


def _tool(name: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    words = name.replace("_", " ")
    return {"name": name, "description": f"Shows {words}.", "inputSchema": schema or {"type": "object"}}


TOOLS = [
    *(_tool(name) for name in (*CONTENT, *OTHER_TOOLS)),
    _tool("json_schema_2020_12_tool", FULL_SCHEMA),
    _tool("test_header_param", HEADER_SCHEMA),
]

RESOURCES: dict[str, dict[str, Any]] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
}
TEMPLATE = "test://template/{id}/data"


def _says(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": block} for block in blocks]


def prompt_messages(name: str, given: dict[str, str]) -> list[dict[str, Any]] | None:
    """Return the messages of a prompt with these arguments; None if there is no such prompt."""
    arguments = f"arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"
    uri = given.get("resourceUri", "test://example-resource")
    message = {
        "test_simple_prompt": _says(text("This is a simple prompt for testing.")),
        "test_prompt_with_arguments": _says(text(f"Prompt with arguments: {arguments}")),
        "test_prompt_with_embedded_resource": _says(
            embedded(uri, "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ),
        "test_prompt_with_image": _says(image(), text("Please analyze the image above.")),
    }
    return message.get(name)


def _prompt(name: str, *arguments: str) -> dict[str, Any]:
    expected = [
        {"name": argument, "description": "Something to put in.", "required": True} for argument in arguments
    ]
    return {"name": name, "description": f"Shows {name.replace('_', ' ')}.", "arguments": expected}


PROMPTS = [
    _prompt("test_simple_prompt"),
    _prompt("test_prompt_with_arguments", "arg1", "arg2"),
    _prompt("test_prompt_with_embedded_resource", "resourceUri"),
    _prompt("test_prompt_with_image"),
    _prompt("test_input_required_result_prompt"),
]
