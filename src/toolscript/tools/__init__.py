"""Tool search over a registry: catalog, skills and hierarchical search."""
