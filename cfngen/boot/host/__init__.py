"""What masters and nodes have in common: files, downloads, services, disks, the kubelet, the cluster file's hooks."""
