"""What only masters do: the data volume, the control plane with etcd, certificates, add-ons, and backups."""
