"""What an operator, and CloudFormation for them, must be allowed to do."""
