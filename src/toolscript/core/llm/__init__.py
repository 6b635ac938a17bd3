"""Language models that answer by a JSON schema."""
