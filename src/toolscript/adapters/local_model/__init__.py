"""Embedding models in this process: a folder with an ONNX model, or a name that fastembed knows."""
