"""The account: clients, errors, clock, and typed views of what it holds."""
