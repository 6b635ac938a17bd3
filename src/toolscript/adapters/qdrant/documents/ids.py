"""A passage's id in the engine: twelve bytes say whose it is and of which document, four which passage.

So what a search finds can be grouped by document before anything else of it is read.
"""

from collections.abc import Iterable

from toolscript.adapters.qdrant import wire
from toolscript.model.document_points import PassageId
from toolscript.model.documents import DocumentKey

LETTERS_OF_KEY = 24


def point_id(id_: PassageId) -> wire.PointId:
    key, number = id_
    return wire.PointId(uuid=f"{key[:8]}-{key[8:12]}-{key[12:16]}-{key[16:20]}-{key[20:]}{number:08x}")


def passage_id(point: wire.PointId) -> PassageId:
    letters = point.uuid.replace("-", "")
    return PassageId(letters[:LETTERS_OF_KEY], int(letters[LETTERS_OF_KEY:], 16))


def head_ids(keys: Iterable[DocumentKey]) -> list[PassageId]:
    return [PassageId(key, 0) for key in keys]
