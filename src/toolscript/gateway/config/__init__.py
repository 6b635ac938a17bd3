"""Config files: reading, checking, writing, and what is trusted of them."""
