"""From a kernel's source to a first op file (`gpuemu init`)."""
