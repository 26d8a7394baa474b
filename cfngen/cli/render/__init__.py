"""Formatting results as lines of text: pure functions, one module for each kind of result."""
