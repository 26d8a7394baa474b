"""Existing objects that the cluster file names."""
