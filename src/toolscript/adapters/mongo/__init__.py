"""A library in MongoDB: sources, chunks and extractions, to read and, for whoever ingests, to write."""

from toolscript.adapters.mongo.connection import Document, MongoLibrary, connect
from toolscript.adapters.mongo.reader import MongoLibraryReader
from toolscript.adapters.mongo.writer import MongoLibraryWriter

__all__ = ["Document", "MongoLibrary", "MongoLibraryReader", "MongoLibraryWriter", "connect"]
