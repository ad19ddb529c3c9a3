"""Calls of forward or backward that raise."""
