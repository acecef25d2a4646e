"""One measurement a file; each has a ``run()`` that yields lines to print."""
