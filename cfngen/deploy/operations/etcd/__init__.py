"""Taking and restoring snapshots of etcd."""
