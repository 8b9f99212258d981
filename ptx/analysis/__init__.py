"""Read-only facts about a kernel: control flow, liveness, uniformity. Nothing here changes the IR."""
