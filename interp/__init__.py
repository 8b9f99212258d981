"""What a machine does with checked IR: instruction meanings, number formats, memory, scheduling, engines."""
