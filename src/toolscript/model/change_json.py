"""A change as JSON, the same on every surface."""

from toolscript.model.changes import ChangeDetails, ItemChange


def change_to_json(change: ItemChange) -> dict[str, object]:
    return {
        "id": change.id,
        "item_id": change.item_id,
        "source": change.source,
        "key": change.key,
        "server": change.server,
        "name": change.name,
        "state": str(change.state),
        "changed_fields": list(change.changed_fields),
        "old_fingerprint": change.old_fingerprint,
        "new_fingerprint": change.new_fingerprint,
        "seen_at": change.seen_at.isoformat(),
        "reviewed_by": change.reviewed_by,
        "reviewed_at": None if change.reviewed_at is None else change.reviewed_at.isoformat(),
    }


def details_to_json(details: ChangeDetails) -> dict[str, object]:
    return {**change_to_json(details.change), "old": dict(details.old), "new": dict(details.new)}
