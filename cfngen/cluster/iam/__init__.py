"""The IAM roles of instances and of service accounts, existing ones and those that are made."""
