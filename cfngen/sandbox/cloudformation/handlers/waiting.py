"""CloudFormation's own types for waiting."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.handlers.handler import Call, Created, Handler


class WaitCondition(Handler):
    """With a creation policy, a wait condition waits for that policy's signals and has no properties.

    Those of the other kind, which waits for what is told to a handle, are not modelled.
    """

    def create(self, call: Call) -> Created:
        """Return a name; `creation` does the waiting."""
        return Created(call.name())

    def delete(self, call: Call) -> None:
        """Nothing was made."""


class WaitConditionHandle(Handler):
    """An address that may be told something; it makes nothing in the account. Its metadata can be read."""

    def create(self, call: Call) -> Created:
        """Return a handle; its physical id is the address."""
        return Created(
            f"https://cloudformation-waitcondition-{call.region}.s3.{call.region}.amazonaws.com/{call.name()}"
        )

    def delete(self, call: Call) -> None:
        """Nothing was made."""
