"""The values of the root's parameters: where each comes from, and what the template allows."""
