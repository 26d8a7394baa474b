"""Handlers of wait conditions and their handles."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.handlers.handler import CreatedResource, Handler, HandlerCall


class WaitCondition(Handler):
    """A wait condition with a creation policy, which waits for signals and has no properties.

    Wait conditions without a creation policy, which wait for data sent to a handle, are not supported.
    """

    def create(self, call: HandlerCall) -> CreatedResource:
        """Return a generated name; `creation` waits for the signals."""
        return CreatedResource(call.generate_name())

    def delete(self, call: HandlerCall) -> None:
        """There is nothing to delete."""


class WaitConditionHandle(Handler):
    """A presigned URL to which data could be sent; it creates nothing in the account, but its metadata can be read."""

    def create(self, call: HandlerCall) -> CreatedResource:
        """Return a handle, whose physical id is the URL."""
        return CreatedResource(
            f"https://cloudformation-waitcondition-{call.region}.s3.{call.region}.amazonaws.com/{call.generate_name()}"
        )

    def delete(self, call: HandlerCall) -> None:
        """There is nothing to delete."""
