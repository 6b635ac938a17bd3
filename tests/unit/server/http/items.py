"""A catalog that fits a screen."""

ITEMS: list[dict[str, object]] = [
    {
        "server": "github",
        "name": "create_pull_request",
        "description": "Open a pull request from one branch into another",
        "input_schema": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
        "output_schema": {"type": "object", "properties": {"number": {"type": "integer"}}},
        "annotations": {"readOnlyHint": False},
    },
    {"server": "github", "name": "list_issues", "description": "List the open issues of a repository"},
    {"server": "files", "name": "readFile", "description": "Read the contents of a file from disk"},
    {"server": "files", "name": "write_file", "description": "Write text into a file, replacing what it held"},
    {"server": "calendar", "name": "create_event", "description": "Schedule a meeting with other people"},
    {"server": "weather", "name": "get_forecast", "description": "查询城市的天气预报"},
    {"server": "pogoda", "name": "get_forecast_ru", "description": "Показать прогноз погоды в городе"},
    {"server": "mail", "name": "send_mail", "description": "Send an email message to someone"},
    {"server": "mail", "name": "summarise", "kind": "prompt", "description": "Summarise an email thread"},
    {"server": "files", "name": "file:///notes.md", "kind": "resource", "description": "Notes about files"},
]
