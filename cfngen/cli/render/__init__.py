"""From data to lines of text: pure functions, one module for each kind of result."""
