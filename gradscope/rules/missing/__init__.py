"""Parameters that no gradient reaches, or that no step changes."""
