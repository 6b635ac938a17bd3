"""Parts of `scripts/build-table`: texts, the model that is imitated, the fit, and the files."""
