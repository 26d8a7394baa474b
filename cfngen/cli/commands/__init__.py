"""One module for each command: the click command as `command`, and its own results; slow imports are in functions."""
