"""Clients of tenants that write and search, and work that goes on beside a test."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

import httpx2

from tests.e2e.tenants.service import SOON


class Client:
    """Requests of one tenant. Every response must be a 200."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx2.Client(
            base_url=url,
            headers={"authorization": f"Bearer {token}"},
            timeout=SOON,
            trust_env=False,
            verify=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def put(self, **texts: str) -> None:
        documents = [{"id": id_, "text": text} for id_, text in texts.items()]
        answer = self._http.put("/documents", json={"documents": documents})
        assert answer.status_code == 200, answer.text

    def remove(self, *ids: str) -> None:
        answer = self._http.request("DELETE", "/documents", json={"ids": list(ids)})
        assert answer.status_code == 200, answer.text

    def find(self, query: str, top_k: int = 3) -> list[tuple[str, float]]:
        request = {"query": query, "search_type": "semantic", "top_k": top_k}
        answer = self._http.post("/search", json=request)
        assert answer.status_code == 200, answer.text
        return [(hit["doc_id"], round(hit["score"], 4)) for hit in answer.json()["hits"]]

    def ids(self) -> set[str]:
        answer = self._http.post("/search", json={"cursor": "*", "top_k": 200})
        return {hit["doc_id"] for hit in answer.json()["hits"]}


@contextmanager
def again_and_again(work: Callable[[], None]) -> Iterator[None]:
    """Repeat until the block ends; a failed request fails the test."""
    stop, failures = threading.Event(), list[BaseException]()

    def repeat() -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as failure:  # noqa: BLE001 - handed to the test
            failures.append(failure)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert failures == []
