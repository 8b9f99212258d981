"""The command line's commands, one file each; imported only when the command runs, so that `--help` stays quick."""
