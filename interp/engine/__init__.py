"""How kernels become native code: plans, emitted LLVM IR, the JIT and its cache. `traced/` interprets plans instead."""
