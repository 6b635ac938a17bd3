"""Finds pieces of knowledge, and says where they stand."""
