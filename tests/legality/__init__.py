"""Whether the verifier draws the line between legal and illegal PTX where NVIDIA's assembler draws it."""
