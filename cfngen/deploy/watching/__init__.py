"""What CloudFormation does: events, progress, and why something failed."""
