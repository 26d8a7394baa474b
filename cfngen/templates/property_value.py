"""The type of property values in templates; troposphere itself does not define one."""

from __future__ import annotations

from troposphere import AWSHelperFn

Value = AWSHelperFn | str | int
"""A text, a number, or an expression that CloudFormation evaluates, such as a reference to a parameter."""
