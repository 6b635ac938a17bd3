"""Qdrant's wire messages and stubs, without the rest of its client.

Importing any part of the vendor's package runs its `__init__`, which loads an HTTP client, a local engine and
an embedding runtime: seconds of work that no command needs. So this module skips that `__init__`.
"""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qdrant_client.grpc import *  # noqa: F403
else:

    def _messages() -> ModuleType:
        if "qdrant_client" in sys.modules:
            return importlib.import_module("qdrant_client.grpc")
        package = ModuleType("qdrant_client")
        spec = importlib.util.find_spec("qdrant_client")
        if spec is None:
            raise ModuleNotFoundError("No module named 'qdrant_client'", name="qdrant_client")
        package.__path__ = spec.submodule_search_locations
        sys.modules["qdrant_client"] = package
        try:
            return importlib.import_module("qdrant_client.grpc")
        finally:
            # A later import of the package loads all of it.
            del sys.modules["qdrant_client"]

    globals().update({name: value for name, value in vars(_messages()).items() if not name.startswith("__")})
