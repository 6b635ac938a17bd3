"""Config files: reading, validation, writing, and trust."""
