"""What must hold before a change; `values` are those of the root's parameters, which override the cluster file."""
