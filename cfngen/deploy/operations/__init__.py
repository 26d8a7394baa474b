"""What changes the account."""
