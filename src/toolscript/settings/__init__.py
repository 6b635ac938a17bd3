"""The only reader of the environment. Every setting is an environment variable `TOOLSCRIPT_<NAME>`."""
