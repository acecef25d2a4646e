"""Exit codes of the program."""

DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130
