"""Ways into a deployed cluster: its certificate authority, kubeconfigs, and the Kubernetes API."""
