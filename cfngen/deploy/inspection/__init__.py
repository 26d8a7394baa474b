"""Inspect a deployed cluster: its stacks, instances, nodes, versions and certificates."""
