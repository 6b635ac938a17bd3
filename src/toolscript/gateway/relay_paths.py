"""Where a client's request with events goes in a gateway, the words of its events, and how its end is read.

Apart from what handles the events: every command loads this.
"""

import json
from typing import Any

from toolscript.client.exchange import Answer

REQUESTS_PATH, ENTRIES_PATH, WATCH_PATH = "/requests", "/entries", "/watch"
LISTED_TOOLS_PATH = "/listed-tools"
CALL = "tools/call"
ID, PROGRESS, LOG, ASK, ANSWERS, CHANGE = "id", "progress", "log", "ask", "answers", "change"
RESULT, ERROR, STATUS = "result", "error", "status"
HEARTBEAT_SECONDS = 10.0
# A gateway that sends nothing for so long does not answer any more.
SILENT_SECONDS = 60.0
# How many events of one request wait to be sent, or handled.
MAX_EVENTS = 1_000
# What no gateway answers, and a client cannot read.
_NOT_A_GATEWAY = Answer(200, b"")


class Events:
    """Implements `Lines` for a client that nothing is said to before the end."""

    def opened(self, connection: Any) -> None: ...
    def read(self, line: bytes) -> Answer | None:
        try:
            event = json.loads(line)
        except ValueError:
            return _NOT_A_GATEWAY
        if not isinstance(event, dict):
            return _NOT_A_GATEWAY
        if RESULT in event:
            return Answer(200, json.dumps(event[RESULT]).encode())
        if ERROR in event:
            status = event.get(STATUS)
            return Answer(status if isinstance(status, int) else 500, json.dumps({ERROR: event[ERROR]}).encode())
        self.take(event)
        return None

    def take(self, event: dict[str, Any]) -> None: ...
