"""Settings of the service, read from the environment."""
