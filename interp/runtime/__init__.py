"""Native functions that both engines call, bound by symbol name."""
