"""Templates on their way to CloudFormation."""
