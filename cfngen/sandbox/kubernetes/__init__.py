"""A cluster of the sandbox: its Kubernetes API, its objects, and what its controllers make in AWS."""
