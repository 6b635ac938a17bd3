"""The gateway, deployable 1: wires adapters to the core. One function per command."""
