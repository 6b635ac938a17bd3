"""The service, deployable 2: wires adapters to the core. One function per command."""
