"""The end of a cluster: what goes, what Kubernetes made beside the stacks, and what stays."""
