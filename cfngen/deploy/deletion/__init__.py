"""Deletes a cluster: its stacks, the resources that Kubernetes created outside of them, and a report of what stays."""
