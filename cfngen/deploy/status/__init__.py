"""How a cluster is: its state, its problems, and whether it validates."""
