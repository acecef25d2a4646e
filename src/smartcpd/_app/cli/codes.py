"""How the program ends, as the shell sees it."""

DONE, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130
