"""EDGES: translate between the outside and the core, and decide nothing. Who is asking?"""
