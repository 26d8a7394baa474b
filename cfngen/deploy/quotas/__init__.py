"""What a new cluster takes of the account's quotas."""
