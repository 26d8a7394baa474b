"""Creating and updating a cluster."""
