"""Derivatives that are not those of their function."""
