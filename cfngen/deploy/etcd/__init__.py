"""Snapshots of etcd: which there are, one more, and the way back to one of them."""
