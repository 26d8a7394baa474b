"""The state that the steps of a boot share: the configuration, the facts, and results of earlier steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .contract import Config, Facts, JsonObject
    from .machine import Machine


class Boot:
    """One run of the boot program: a boot, or a task of a timer.

    It is not a dataclass: those need annotations, which are removed from the sources that an instance gets.

    Attributes:
        config: the role's configuration. Until `program.fetch` has loaded the second stage, it has only the keys of the
            first stage, which are in the user data. `runner.identity` replaces `${name}` in it by the facts.
        facts: what is known about this instance and its stack, by name: the references that CloudFormation substituted
            in the user data, to which `runner.identity` adds the instance's id, address and provider id. They are also
            the values for `${name}` in the configuration.
        deadline: the time of `Machine.clock` at which waits must end, so that a failure is still signalled in time.
        mode: the boot mode of a master's control plane, see `decision`.
        secret_version: the version id of the certificate authorities' secret when it was last read.
        restore_request: the operator's request to restore etcd; empty if there is none.
        max_pods: the number of pods for which the instance has addresses; 0 if addresses set no limit.
        holder_ended: used while a master's data volume is still attached to another instance: the time of
            `Machine.clock` at which that instance was first found to be stopped or terminated; None if it still runs.
    """

    deadline: float
    mode: str
    secret_version: str
    max_pods = 0
    holder_ended: float | None = None

    def __init__(self, config: Config, facts: Facts) -> None:
        self.config = config
        self.facts = facts
        self.restore_request: JsonObject = {}

    def remaining(self, machine: Machine) -> float:
        """Return the seconds until the deadline, but at least 60: for so long a step may wait for something."""
        return max(60.0, self.deadline - machine.clock())


def fill(value: Any, facts: Mapping[str, object]) -> Any:
    """Return a copy of JSON data in which each `${name}` in a string is replaced by the fact of that name.

    If there is no fact of that name, `${name}` stays as it is. Keys of objects are not changed.
    """
    if isinstance(value, dict):
        return {key: fill(item, facts) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, facts) for item in value]
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda match: str(facts.get(match[1], match[0])), value)
    return value
