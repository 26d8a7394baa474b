"""One module for each command, each with the click command as `command`; heavy imports stand inside the functions."""
