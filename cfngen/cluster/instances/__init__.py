"""What instance types and node groups lead to: capacity, GPUs, resources for pods, times of updates."""
