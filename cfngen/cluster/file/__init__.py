"""The cluster file as text: reading, merging, validating and editing it, and messages about what is wrong."""
