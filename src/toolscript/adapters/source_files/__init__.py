"""Files that people have: Markdown, plain text, HTML and PDF, each read in a process that can be lost."""

from toolscript.adapters.source_files.files import open_source_files
from toolscript.adapters.source_files.kinds import known_endings
from toolscript.adapters.source_files.limits import ReadingLimits
from toolscript.adapters.source_files.listing import ListedFile, list_files

__all__ = ["ListedFile", "ReadingLimits", "known_endings", "list_files", "open_source_files"]
