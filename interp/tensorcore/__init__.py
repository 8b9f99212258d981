"""Matrix multiply-accumulate instructions, bit for bit: architecture table, model, fast path, register layouts."""
