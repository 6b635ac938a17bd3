"""Clients of a service that runs elsewhere: search over HTTP, and bulk upload of documents."""
