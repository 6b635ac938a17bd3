"""What an answer of a language model has to look like, as a JSON schema."""

from toolscript.model.items import JsonObject


def object_with(**properties: JsonObject) -> JsonObject:
    """All of these, and nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
