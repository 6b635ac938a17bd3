"""What a point of a passage carries.

Every passage has its tenant, its version, its place in the text and the metadata that filters work on. The first
one of a document is its header, too, and has the rest.
"""

TENANT = "tenant"
# Of a point that is about to be removed, and has nothing else any more but its tenant and version.
GONE = "gone"
HEAD = "head"
VERSION = "version"
TEXT, START, END = "text", "start", "end"
META, MOMENTS = "meta", "moments"
ID, METADATA, HASH, PASSAGES, COMPLETE = "doc_id", "metadata", "hash", "passages", "complete"
HEADER_FIELDS = (TENANT, VERSION, ID, METADATA, HASH, PASSAGES, COMPLETE)
PASSAGE_FIELDS = (TENANT, TEXT, START, END)
SHOWN_FIELDS = tuple(dict.fromkeys((*HEADER_FIELDS, *PASSAGE_FIELDS)))


def field_name(name: str) -> str:
    """A name of metadata as a step of the engine's paths, which dots and brackets have a meaning in."""
    return "f" + "".join(
        letter if letter.isascii() and letter.isalnum() else f"-{ord(letter):x}-" for letter in name
    )


def path(kind: str, name: str) -> str:
    """`kind` is META or MOMENTS."""
    return f"{kind}.{field_name(name)}"
