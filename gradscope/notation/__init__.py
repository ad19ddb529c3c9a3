"""Derivatives as a textbook writes them, and the operands that an expression names.

Text in, text out: no torch, no report.
"""
