"""Many tenants in one service, as alike as they can be: nothing of one may reach another."""
