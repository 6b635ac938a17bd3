"""Qdrant's wire messages and stubs, without the rest of its client.

Importing any part of the vendor's package runs its front page, which loads an HTTP client, a local engine and
an embedding runtime: seconds of work that no command of ours uses. So that page is left out.
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
        front_page = ModuleType("qdrant_client")
        found = importlib.util.find_spec("qdrant_client")
        if found is None:
            raise ModuleNotFoundError("No module named 'qdrant_client'", name="qdrant_client")
        front_page.__path__ = found.submodule_search_locations
        sys.modules["qdrant_client"] = front_page
        try:
            return importlib.import_module("qdrant_client.grpc")
        finally:
            # Whoever imports the package later gets the whole of it.
            del sys.modules["qdrant_client"]

    globals().update({name: value for name, value in vars(_messages()).items() if not name.startswith("__")})
