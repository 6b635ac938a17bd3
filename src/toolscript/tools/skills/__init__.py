"""Skills: how people manage, import and export them."""
