"""Words that all rooms share: messages, the statuses of stacks, next commands."""
