"""Implementations of the kit (interp/kit.py)."""
