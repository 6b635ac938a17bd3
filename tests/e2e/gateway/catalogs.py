"""Tools as real servers have them, and the file that tests.support.mcp_servers.catalog serves them from."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.gateway.machines import mcp_server

Tool = dict[str, Any]


def tool(server: str, name: str, description: str, **properties: str) -> Tool:
    """`properties`: required string arguments by name, with descriptions."""
    schema = {
        "type": "object",
        "properties": {key: {"type": "string", "description": message} for key, message in properties.items()},
        "required": [*properties],
    }
    return {"server": server, "name": name, "description": description, "input_schema": schema}


TOOLS: Sequence[Tool] = (
    tool("desktop-commander", "read_file", "Read the contents of a file from disk", path="where the file is"),
    tool("desktop-commander", "write_file", "Write text to a file on disk", path="where", content="what"),
    tool(
        "desktop-commander",
        "search_code",
        "Search what is in files for a text or a pattern, like grep",
        pattern="it",
    ),
    tool("desktop-commander", "search_files", "Search for files by name pattern", pattern="part of the name"),
    tool("desktop-commander", "list_directory", "List the files and folders in a folder", path="the folder"),
    tool("desktop-commander", "kill_process", "End a running process by its id", pid="which one"),
    tool("filesystem", "read", "Read file from filesystem", file_path="which file"),
    tool("filesystem", "move", "Move or rename a file", source="from", destination="to"),
    tool("shell", "execute_command", "Execute a command in the terminal and return its output", command="what"),
    tool("database", "query", "Run a read-only SQL query against the database", sql="the statement"),
    tool("database", "list_tables", "List the tables of the database with their columns"),
    tool("database", "explain_query", "Show the plan of a SQL query and how long it takes", sql="the statement"),
    tool("database", "export_rows", "Export the rows of a table as CSV", table="which one"),
    tool("weather", "get_forecast", "Weather forecast for a city", city="which city"),
    tool("weather", "pogoda", "Показывает прогноз погоды для города на несколько дней", gorod="название города"),
    tool("mail", "otpravit", "Отправляет письмо по электронной почте адресату", komu="адрес получателя"),
    tool("mail", "send_email", "Send an e-mail message to somebody", to="whom", body="what"),
    tool("calendar", "chuangjian", "在日历中创建新的会议或事件", title="标题"),
    tool("calendar", "fanyi", "把文本翻译成另一种语言", text="要翻译的文本"),
    tool("calendar", "delete_event", "Delete an event from the calendar", event="its id"),
)
SERVERS = tuple(sorted({str(one["server"]) for one in TOOLS}))


def write_catalog(path: Path, tools: Sequence[Tool]) -> Path:
    """Write atomically: a server may be reading it."""
    new = path.with_suffix(".new")
    new.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in tools), "utf-8")
    return new.replace(path)


def catalog_servers(path: Path, names: Sequence[str] = SERVERS) -> Mapping[str, object]:
    """A server of each name, with the tools that the file has for it."""
    return {name: mcp_server("catalog", str(path), name) for name in names}
