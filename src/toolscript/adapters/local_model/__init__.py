"""Embedding models in this process: a folder with an ONNX model, or a name that fastembed knows."""

from toolscript.adapters.local_model.embedder import LocalEmbedder
from toolscript.adapters.local_model.engine import Device

__all__ = ["Device", "LocalEmbedder"]
