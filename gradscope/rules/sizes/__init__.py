"""Gradients that vanish, explode, or are zero."""
