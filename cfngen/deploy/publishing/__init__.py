"""Templates on their way to CloudFormation: the bucket, their addresses, and what must be acknowledged."""
