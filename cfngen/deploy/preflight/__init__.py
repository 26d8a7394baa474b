"""What must hold before a change."""
