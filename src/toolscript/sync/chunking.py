"""What a source's blocks are cut into."""

CHUNKS_VERSION = 1
