"""Shared parts of the HTTP APIs: authentication, admission, errors, logs and paging."""
