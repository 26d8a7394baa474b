"""What a deletion removes, and what remains."""
