"""Searches that were noted, in memory."""

from toolscript.model.query_log import LoggedQuery


class MemoryQueryLog:
    def __init__(self) -> None:
        self.queries: list[LoggedQuery] = []

    def record(self, query: LoggedQuery) -> None:
        self.queries.append(query)
