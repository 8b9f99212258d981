"""Replays: a failing case as data that any machine can execute again (format, writer, reader, comparison)."""
