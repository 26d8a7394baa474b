"""Deleting a cluster, its orphans and its bucket."""
