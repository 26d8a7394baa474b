"""Runs a role's steps in order, says what each did and how long it took, and tells CloudFormation how it ended."""

from __future__ import annotations

import json
import re
import traceback
from importlib import import_module, invalidate_caches
from typing import Any, Callable

from .machine import HOME, LOG, BootError, Machine, fill

SIGNALLED = HOME + "/signalled"
# Seconds in which a wait condition must have come into being. An update that makes it does so after all masters, of
# which the last may follow four others, each within the hour that CloudFormation gives a batch at most; an instance
# that failed is gone by then.
SIGNAL_TIMEOUTS = {"SUCCESS": 5 * 3600.0, "FAILURE": 300.0}
# Nobody waits for this resource yet, or does so again once an operation that failed is repeated.
NOT_WAITING = re.compile(r"Resource \S+ does not exist|Resource \S+ is in (CREATE_FAILED|DELETE_\w+) state")
DUPLICATE = re.compile(r"Signal with ID \S+ for resource \S+ already exists")
# A step takes the role's configuration, does its part if that is not done yet, and returns what a person should know.
Step = Callable[[Machine, "dict[str, Any]"], str]


def main(arguments: list[str]) -> int:
    """Run the steps of the configured role, or those of one of its tasks."""
    machine = Machine()
    config = json.loads(machine.read(HOME + "/config.json"))
    config["references"] = json.loads(machine.read(HOME + "/references.json"))
    if not arguments:
        return run(machine, config, {title: named(name) for title, name in config["steps"].items()})
    machine.prefix = f"cfngen-{arguments[0]}"
    config.update(json.loads(machine.read(HOME + "/role.json")))
    steps = {title: named(name) for title, name in config["tasks"][arguments[0]].items()}
    return run(machine, config, steps, final=False)


def named(name: str) -> Step:
    """Return the step `module.function` of this package; its module may come only with an earlier step."""

    def step(machine: Machine, config: dict[str, Any]) -> str:
        module, _, function = name.partition(".")
        invalidate_caches()
        return str(getattr(import_module("." + module, __package__), function)(machine, config))

    return step


def run(machine: Machine, config: dict[str, Any], steps: dict[str, Step], final: bool = True) -> int:
    """Run steps one after another, the instance's identity first; stop at the first failure.

    Args:
        machine: the instance.
        config: the role's configuration; what steps find out is added to it.
        steps: functions by name, in order.
        final: whether CloudFormation hears how it ended.

    Returns:
        The process's exit code.
    """
    machine.region = config["region"]
    config["deadline"] = machine.clock() + config["timeout"] * 60 - 120
    begin = machine.clock()
    steps = {"identity": identity, **steps, **({"signal": succeed} if final else {})}
    for number, (name, step) in enumerate(steps.items(), 1):
        title, start = f"[{number}/{len(steps)}] {name}", machine.clock()
        try:
            outcome = step(machine, config)
        except BootError as error:
            failure, hint = str(error), error.hint or f"see {LOG}"
        except Exception as error:  # noqa: BLE001 - whatever it is, CloudFormation and the console must hear of it
            machine.log(traceback.format_exc())
            failure, hint = f"{type(error).__name__}: {error}", f"see {LOG}"
        else:
            # A task that has nothing to do says nothing: some run each minute.
            if final or (outcome and name != "identity"):
                machine.say(f"{title}: {outcome} ({machine.clock() - start:.1f} s)")
            continue
        machine.say(f"{title} FAILED after {machine.clock() - start:.1f} s: {failure}. What to do: {hint}")
        if final:
            try:
                machine.say(signal(machine, config, "FAILURE"))
            except (BootError, ImportError, KeyError) as error:
                # Without boto3 or an identity nothing can be told; the stack fails when its time is up.
                machine.say(f"CloudFormation was not told: {error}")
        return 1
    if final:
        machine.say(f"done in {machine.clock() - begin:.1f} s")
    return 0


def identity(machine: Machine, config: dict[str, Any]) -> str:
    """Find out which instance this is, and put it and the stack's references into the configuration."""
    document = json.loads(machine.metadata("dynamic/instance-identity/document"))
    instance, zone = document["instanceId"], document["availabilityZone"]
    facts = {
        **config["references"],
        "instanceId": instance,
        "address": document["privateIp"],
        "providerId": f"aws:///{zone}/{instance}",
    }
    config.update(fill(config, facts), facts=facts)
    return f"{instance} in {zone}, {config['role']} of {config['cluster']}"


def remaining(machine: Machine, config: dict[str, Any]) -> float:
    """Return how many seconds a step may still wait so that a failure reaches CloudFormation before its time-out."""
    return max(60.0, float(config["deadline"]) - machine.clock())


def succeed(machine: Machine, config: dict[str, Any]) -> str:
    """Tell CloudFormation that the instance works."""
    return signal(machine, config, "SUCCESS")


def signal(machine: Machine, config: dict[str, Any], status: str) -> str:
    """Signal the stack once in the instance's life; a stack that is not waiting needs no signal.

    A master signals its Auto Scaling group, which waits in updates, and its wait condition, which waits when the
    cluster or the slot is created. Usually only one of them waits; the other one "cannot be signaled". A failure is not
    the last word: an instance that works after a reboot says so, and whoever waits after that operation hears it. A
    signal that "already exists" has arrived, and only the answer has not.

    Raises:
        BootError: CloudFormation cannot be reached or refuses the role.
    """
    facts = config["facts"]
    signalled_instance, _, signalled_status = machine.read(SIGNALLED).partition(" ")
    if signalled_instance == facts["instanceId"] and signalled_status in ("SUCCESS", status):
        return f"told CloudFormation {signalled_status} before"
    refusals = [_signal_resource(machine, facts, facts["stack"], facts["resource"], status, 0)]
    if facts.get("condition"):
        stack = facts["conditionStack"]
        refusals.append(_signal_resource(machine, facts, stack, facts["condition"], status, SIGNAL_TIMEOUTS[status]))
    machine.write(SIGNALLED, f"{facts['instanceId']} {status}")
    is_duplicate = (signalled_instance, signalled_status) != (facts["instanceId"], "FAILURE") and any(
        map(DUPLICATE.match, refusals)
    )
    return f"told CloudFormation {status}" if "" in refusals or is_duplicate else "; ".join(refusals)


def _signal_resource(
    machine: Machine, facts: dict[str, str], stack: str, resource: str, status: str, seconds: float
) -> str:
    """Signal a resource; return why it cannot be, or an empty text.

    A resource that CloudFormation has not come to yet "does not exist": a wait condition is made after its group. An
    update that makes one comes to it only when all masters' groups have been updated, to which this instance's signal
    contributes; then, and where an operation has failed and may be repeated, the signal waits for who waits for it.
    """
    deadline = machine.clock() + seconds
    reported = False
    while True:
        response = machine.aws(
            "cloudformation",
            "signal_resource",
            "ValidationError",
            StackName=stack,
            LogicalResourceId=resource,
            UniqueId=facts["instanceId"],
            Status=status,
        )
        refusal = str(response["Error"]["Message"]) if "Error" in response else ""
        if not NOT_WAITING.match(refusal) or machine.clock() >= deadline:
            return refusal
        if not reported:
            machine.say(f"waiting until the stack {stack} waits for {resource}, to tell it {status}")
            reported = True
        machine.sleep(10)
