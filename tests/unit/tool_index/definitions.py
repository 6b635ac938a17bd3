"""Tools of every kind, for tests: functions and definitions of three vendors."""

from typing import Annotated, Literal

import mcp.types
from pydantic import BaseModel, Field

Definition = dict[str, object]

SCHEMA: Definition = {"type": "object", "properties": {"title": {"type": "string", "description": "its headline"}}}


class Address(BaseModel):
    street: str
    town: str


def read_file(path: str, encoding: str = "utf-8", mode: Literal["text", "bytes"] = "text") -> str:
    """Read a file from the disk.

    Args:
        path: Where the file is,
            from the root.
        encoding (str): How its letters are encoded.

    Returns:
        The contents.
    """
    return f"{path}{encoding}{mode}"


def forecast(city: str, days: int = 1) -> str:
    """Predict the weather.

    Parameters
    ----------
    city : str
        The place to predict it for.
    days
        How far ahead.

    Returns
    -------
    str
        The prediction.
    """
    return f"{city}{days}"


def send_letter(to: Address, *, subject: Annotated[str, Field(description="the first line")] = "") -> None:
    """Post a letter.

    :param to: who gets it,
        and where
    :param str subject: not shown, because the type says it
    """


CREATE_ISSUE: Definition = {
    "type": "function",
    "function": {"name": "create_issue", "description": "Open an issue in a repository", "parameters": SCHEMA},
}
LIST_ISSUES: Definition = {
    "type": "function",
    "name": "list_issues",
    "description": "List the issues of a repository",
    "parameters": {"type": "object", "properties": {}},
}
CONVERT: Definition = {
    "name": "convert_currency",
    "description": "Convert an amount of money to another currency",
    "input_schema": {"type": "object", "properties": {"amount": {"type": "number"}}},
}
PLAY: Definition = {"name": "music__play_song", "description": "Play a song", "inputSchema": {"type": "object"}}
COMMIT = mcp.types.Tool(name="git__commit", description="Record staged changes", input_schema={"type": "object"})

ALL: list[object] = [read_file, forecast, send_letter, CREATE_ISSUE, LIST_ISSUES, CONVERT, PLAY, COMMIT]
DEFINED = [CREATE_ISSUE, LIST_ISSUES, CONVERT, PLAY]
