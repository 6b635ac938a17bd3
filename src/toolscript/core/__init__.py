"""Code that all capabilities share: values, text, retrieval and the adapters of the engines."""
