"""The values of the root's parameters: which source each comes from, and which values the template allows."""
