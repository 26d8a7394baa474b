"""What only nodes do: wait for masters of their version, join, run a first pod, and move their pods elsewhere."""
