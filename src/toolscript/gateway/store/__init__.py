"""Cache files of the gateway."""
