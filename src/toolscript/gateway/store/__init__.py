"""What the gateway keeps in files between two starts."""
