"""`python -m gpuemu`: the same as the `gpuemu` command."""

from gpuemu.cli import main

if __name__ == "__main__":
    main()
