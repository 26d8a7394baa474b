"""Filling in what a cluster file leaves out, from what it says."""
