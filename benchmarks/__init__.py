"""Measurements, none of which is a test: what the doctor finds, and what everything costs."""
