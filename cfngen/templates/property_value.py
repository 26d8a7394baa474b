"""The type of a property's value in a template; troposphere itself does not define one."""

from __future__ import annotations

from troposphere import AWSHelperFn

PropertyValue = AWSHelperFn | str | int
"""Value of a resource's property: a text, a number, or an expression such as a reference to a parameter."""
