"""The resource types for which operations on stacks have special cases."""

from __future__ import annotations

AUTO_SCALING_GROUP = "AWS::AutoScaling::AutoScalingGroup"
NESTED_STACK = "AWS::CloudFormation::Stack"
WAIT_CONDITION = "AWS::CloudFormation::WaitCondition"
