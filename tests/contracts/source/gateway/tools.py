"""The tools that S1 names, and some others."""

from tests.e2e.gateway.catalogs import Tool, tool

CONTENT = {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]}

TOOLS: tuple[Tool, ...] = (
    tool("desktop-commander", "read_file", "Read file contents from disk", path="which")
    | {"output_schema": CONTENT},
    tool("desktop-commander", "search_files", "Search for files by name pattern", pattern="part of a name"),
    tool(
        "desktop-commander",
        "search_code",
        "Search for text/code patterns within file contents using ripgrep.",
        pattern="what",
    ),
    tool("filesystem", "read", "Read file from filesystem", file_path="which"),
    tool("shell", "execute_command", "Execute a command in the terminal and return its output", command="what"),
    tool("github", "create_issue", "Create an issue in a repository", title="what it is about"),
    tool("github", "list_pull_requests", "List the pull requests of a repository", repository="which"),
    tool("myserver", "echo", "Say the same again", text="what"),
    tool("myserver", "reverse", "Say it backwards", text="what"),
    tool("otherserver", "read_file", "Fetch a stored file", key="which"),
    tool("otherserver", "get_forecast", "Weather forecast for a city", city="which"),
)
SERVERS = tuple(sorted({str(one["server"]) for one in TOOLS}))
NAMES = {f"{one['server']}__{one['name']}" for one in TOOLS}
