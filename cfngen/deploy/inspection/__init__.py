"""How a deployed cluster is: its stacks, instances, nodes, versions and certificates."""
