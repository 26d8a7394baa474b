"""Formatting results as lines of text: pure functions, one module for each kind of result.

Their parameter `width` is the width of the terminal in characters; None means the actual one.
"""
