"""Replacing one instance of a cluster: a master, also by one of another type, a node, or the bastion."""
