"""What every HTTP API shares: authentication, admission, errors, logs and paging."""
