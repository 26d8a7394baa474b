"""What the steps of a boot share: the configuration, the facts, and what earlier steps have found out."""

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

    It is no dataclass, as annotations do not travel to the instance.

    Attributes:
        config: the role's configuration, which no step changes. `runner.identity` fills in the facts; until
            `program.fetch` has loaded the second stage it is the first stage's part.
        facts: the values of `${name}` in the configuration; before `runner.identity` only the references.
        deadline: when waits must end so that a failure is still signalled in time, by the machine's clock.
        mode: the boot mode of a master's control plane, see `decision`.
        secret_version: the version of the certificate authorities' secret that was read last.
        restore_request: the operator's request to restore etcd; empty if there is none.
        max_pods: the number of pods for which the instance has addresses; 0 if addresses set no limit.
        holder_ended: when the instance that holds a master's volume was first seen stopped or terminated, if it was.
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
        """Return for how many seconds a step may still wait and signal its failure before the stack times out."""
        return max(60.0, self.deadline - machine.clock())


def fill(value: Any, facts: Mapping[str, object]) -> Any:
    """Return `value` with `${name}` replaced by facts in every string; unknown names are left as they are."""
    if isinstance(value, dict):
        return {key: fill(item, facts) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, facts) for item in value]
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda match: str(facts.get(match[1], match[0])), value)
    return value
