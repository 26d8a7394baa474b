"""Steps of both masters and nodes: files, downloads, services, disks, the kubelet, the user's units and commands."""
