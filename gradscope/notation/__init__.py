"""Derivatives as a textbook writes them, and the texts of their operands.

Text in, text out: no torch, no report.
"""
