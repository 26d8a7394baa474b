"""What a cluster takes of the account's quotas."""
