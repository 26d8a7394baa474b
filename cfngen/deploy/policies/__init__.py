"""What an operator, and CloudFormation for him, must be allowed to do."""
