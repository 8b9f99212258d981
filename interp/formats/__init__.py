"""Scalar conversions and arithmetic on number formats, all in integer code: unsigned words in, unsigned words out."""
