"""The resources of the API, each a class whose methods are its operations."""
