"""Follow CloudFormation operations: their events, their progress, and why they failed."""
