"""The training loop: what becomes of gradients between two backward calls."""
