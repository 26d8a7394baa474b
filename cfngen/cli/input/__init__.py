"""What a command is given: options and arguments, the cluster file, the account."""
