"""IAM policies for operators and for CloudFormation's service role."""
