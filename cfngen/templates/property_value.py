"""The type of the value of a resource's property, which troposphere's own types leave open."""

from __future__ import annotations

from troposphere import AWSHelperFn

Value = AWSHelperFn | str | int
"""A scalar, or an expression that CloudFormation evaluates, such as the reference to a parameter."""
