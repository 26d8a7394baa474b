"""etcd snapshots: listing them, taking one, and restoring one."""
