"""What documents the cluster file: its schema, its reference, and examples."""
