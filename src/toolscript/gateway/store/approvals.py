"""The approvals of all servers: what is held of their offers, and decisions about it."""

import logging
import os
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from toolscript.core.atomic_files import write_json_atomically
from toolscript.core.errors import Conflict, Forbidden, SetupError
from toolscript.core.items import Item
from toolscript.core.mcp_client.model import Offer, ServerSpec, Transport
from toolscript.gateway.approvals import (
    HELD,
    PERSON_REVIEWS,
    Approvals,
    Decision,
    Review,
    digest_of,
    held_message,
)
from toolscript.gateway.store.approval_records import ServerApprovals

# Changed with every decision: other processes, and other workspaces of this one, watch it.
DECIDED = "decided.json"


logger = logging.getLogger(__name__)


class ApprovalStore:
    """The approvals of the servers of one gateway or workspace. `own_file` is the user's own config file."""

    def __init__(self, folder: Path, mode: Approvals, own_file: Path) -> None:
        self._folder = folder
        self._mode = mode
        self._own_file = own_file
        self._servers: dict[str, ServerApprovals] = {}

    @property
    def decided_file(self) -> Path:
        return self._folder / DECIDED

    def use(self, specs: Sequence[ServerSpec]) -> None:
        known = {server.source: server for server in self._servers.values()}
        self._servers = {}
        for spec in specs:
            server = self._of(spec)
            # It may know what could not be written.
            self._servers[spec.name] = kept = known.get(server.source, server)
            kept.holds = server.holds

    def admitted(self, offers: Sequence[Offer]) -> list[Offer]:
        """Return the offers without what is held. A server's first offer is approved as a whole."""
        return [self._admitted_or_none(offer) for offer in offers]

    def reviews(self, offers: Sequence[Offer]) -> list[Review]:
        """Return what these servers offer and is not approved, in order of server, name and kind."""
        reviews = [review for offer in offers for review in self._reviews(offer)]
        return sorted(reviews, key=lambda review: (review.server, review.name, review.kind, review.digest))

    def is_approved(self, item: Item) -> bool:
        """Return whether the current definition of this item is the approved one."""
        server = self._servers.get(item.server)
        return server is not None and server.is_approved(item)

    def require(self, item: Item) -> None:
        """Raise Forbidden if the item is held."""
        server = self._servers.get(item.server)
        review = server.held_review(item) if server else None
        if review is not None:
            raise Forbidden(
                held_message(review),
                hint=PERSON_REVIEWS,
                details={HELD: review.status.value, "tool": review.tool, "server": item.server},
            )

    def decide(self, decision: Decision, digests: Collection[str], offers: Sequence[Offer]) -> list[Review]:
        """Decide about the definitions with these digests. Return what was decided about."""
        reviews = {review.digest: review for review in self.reviews(offers)}
        if unknown := [digest for digest in digests if digest not in reviews]:
            raise Conflict(
                f"{len(unknown)} of {len(digests)} definitions are not there any more, or are approved",
                hint="`toolscript review list` shows what there is now",
                details={"digests": unknown[:10]},
            )
        decided = 0
        try:
            for offer in offers:
                server = self._servers.get(offer.server)
                items = [item for item in offer.items if server and digest_of(server.source, item) in digests]
                if server and items:
                    server.decide(decision, items)
                    decided += len(items)
        except SetupError as error:
            message = f"{error.message}; of {len(digests)} definitions, {decided} were decided about before that"
            raise SetupError(message, hint=error.hint, details=error.details) from error
        finally:
            if decided:
                self._tell()
        return [reviews[digest] for digest in digests]

    def _tell(self) -> None:
        """Let other processes read the records again."""
        try:
            write_json_atomically(self.decided_file, {"at": time.time_ns()})
        except OSError as error:
            reason = {"file": str(self.decided_file), "reason": str(error)}
            logger.warning("other processes may follow a decision late", extra=reason)

    def _admitted_or_none(self, offer: Offer) -> Offer:
        """One server that cannot be judged keeps no other one out."""
        try:
            return self._admitted(offer)
        except Exception as error:  # noqa: BLE001 - whatever a server sends
            about = {"server": offer.server, "reason": type(error).__name__}
            logger.error("all tools of a server are left out: they cannot be compared", extra=about)
            return replace(offer, items=())

    def _reviews(self, offer: Offer) -> list[Review]:
        server = self._servers.get(offer.server)
        try:
            return server.reviews(offer.items) if server else []
        except Exception as error:  # noqa: BLE001 - whatever a server sends
            about = {"server": offer.server, "reason": type(error).__name__}
            logger.error("the tools of a server cannot be compared", extra=about)
            return []

    def _admitted(self, offer: Offer) -> Offer:
        server = self._servers.get(offer.server)
        if server is None:
            return offer
        server.observe(offer.items)
        held = server.held(offer.items)
        if not held:
            return offer
        return replace(offer, items=tuple(item for item in offer.items if item.key not in held))

    def _of(self, spec: ServerSpec) -> ServerApprovals:
        own = Path(os.path.realpath(self._own_file.parent)) / self._own_file.name
        file = own if self._is_own(spec.file) else os.path.realpath(spec.file)
        return ServerApprovals(self._folder, spec, str(file), holds=self._holds(spec))

    def _holds(self, spec: ServerSpec) -> bool:
        if self._mode is Approvals.DEFAULT:
            return spec.transport is not Transport.STDIO or not self._is_own(spec.file)
        return self._mode is Approvals.STRICT

    def _is_own(self, file: str) -> bool:
        try:
            return not file or Path(file).samefile(self._own_file)
        except OSError:
            return Path(file) == self._own_file
