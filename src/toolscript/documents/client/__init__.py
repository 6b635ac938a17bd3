"""Documents in files, as a client reads and writes them."""
