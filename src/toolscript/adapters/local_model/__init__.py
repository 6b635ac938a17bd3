"""Embedding models in this process: a folder with an ONNX model, or a name that fastembed knows."""

from typing import TYPE_CHECKING

from toolscript.late_names import late_names

if TYPE_CHECKING:
    from toolscript.adapters.local_model.embedder import LocalEmbedder
    from toolscript.adapters.local_model.engine import Device

__all__ = ["Device", "LocalEmbedder"]

__getattr__ = late_names(__name__, {"Device": "engine", "LocalEmbedder": "embedder"})
