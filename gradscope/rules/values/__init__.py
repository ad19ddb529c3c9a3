"""Numbers that are not finite, or that a dtype cannot hold."""
