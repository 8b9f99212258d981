"""The special-function unit (MUFU) and the PTX `.approx` instructions, bit for bit as an H200 computes them."""
