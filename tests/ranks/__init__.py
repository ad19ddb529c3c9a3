"""Programs of several ranks, and a way to run a command in each of them."""
