"""Runs a role's steps in order, logs the result and duration of each, and signals CloudFormation at the end."""

from __future__ import annotations

import json
import re
import traceback
from importlib import import_module, invalidate_caches
from typing import TYPE_CHECKING

from .machine import HOME, LOG, BootError, Machine
from .state import Boot, fill

if TYPE_CHECKING:
    from typing import Callable

    from .contract import Facts, Steps

    # A function that does the step's work, unless an earlier run has done it, and returns a summary for the log.
    Step = Callable[[Machine, Boot], str]

# File with the instance's id and the status of the last signal, separated by a space.
SIGNALLED_FILE = HOME + "/signalled"
# By status, the seconds for which a signal is retried while its wait condition does not exist. An update creates the
# condition after it has replaced all masters: up to five, one after another, each with a time-out of at most an hour. A
# failure is retried for a shorter time, as the instance is soon terminated.
SIGNAL_TIMEOUTS = {"SUCCESS": 5 * 3600.0, "FAILURE": 300.0}
# Pattern of CloudFormation's message if a resource does not accept signals yet: it does not exist yet, or its creation
# or deletion has failed and the operation may be repeated; or its whole stack was kept as it failed, to be continued.
NOT_WAITING = re.compile(r"\w+ \S+ (does not exist|is in (\w+_FAILED|DELETE_))")


def main(arguments: list[str]) -> int:
    """Boot, or run the task of a timer or service; return the process's exit code.

    Args:
        arguments: empty for a boot, otherwise the task's name.
    """
    machine = Machine()
    config = json.loads(machine.read(HOME + "/config.json"))
    facts = json.loads(machine.read(HOME + "/references.json"))
    steps = config["steps"]
    if arguments:
        machine.prefix = f"cfngen-{arguments[0]}"
        config.update(json.loads(machine.read(HOME + "/role.json")))
        steps = config["tasks"][arguments[0]]
    return run(machine, Boot(config, facts), _lazy_steps(steps), not arguments)


def _lazy_steps(steps: Steps) -> dict[str, Step]:
    """Return a function for each step by title, from the functions' names by title."""
    return {title: lazy_step(name) for title, name in steps.items()}


def lazy_step(name: str) -> Step:
    """Return a function that runs the step `module.function`.

    The module is imported only when the step runs, as an earlier step may have to unpack it.
    """

    def step(machine: Machine, boot: Boot) -> str:
        module, _, function = name.rpartition(".")
        invalidate_caches()
        return str(getattr(import_module("." + module, __package__), function)(machine, boot))

    return step


def run(machine: Machine, boot: Boot, steps: dict[str, Step], is_boot: bool = True) -> int:
    """Run steps one after another, beginning with `identity`; stop at the first failure.

    Args:
        is_boot: True for a boot, which signals CloudFormation at the end; False for the task of a timer or service.

    Returns:
        The process's exit code.
    """
    machine.region = boot.config["region"]
    # Two minutes before CloudFormation's time-out.
    boot.deadline = machine.clock() + boot.config["timeout"] * 60 - 120
    begin = machine.clock()
    # In a boot the first step is `identity` and the last one sends the signal; a task sends none.
    steps = {"identity": identity, **steps, **({"signal": signal_success} if is_boot else {})}
    for number, (name, step) in enumerate(steps.items(), 1):
        title, start = f"[{number}/{len(steps)}] {name}", machine.clock()
        try:
            outcome = step(machine, boot)
        except BootError as error:
            failure, hint = str(error), error.hint or f"see {LOG}"
        except Exception as error:  # noqa: BLE001 - whatever it is, CloudFormation and the console must hear of it
            machine.log(traceback.format_exc())
            failure, hint = f"{type(error).__name__}: {error}", f"see {LOG}"
        else:
            # A task that had nothing to do logs nothing: some run every minute.
            if is_boot or (outcome and name != "identity"):
                machine.say(f"{title}: {outcome} ({machine.clock() - start:.1f} s)")
            continue
        # Nor does one that fails as it did before, numbers such as seconds aside: the file holds how it failed.
        if is_boot or machine.write(f"{HOME}/{machine.prefix}", re.sub(r"\d", "", failure)):
            machine.say(f"{title} FAILED after {machine.clock() - start:.1f} s: {failure}. What to do: {hint}")
        if is_boot:
            try:
                machine.say(signal(machine, boot, "FAILURE"))
            except (BootError, ImportError, KeyError) as error:
                # Without boto3 or an identity no signal can be sent; the stack then fails by its time-out.
                machine.say(f"CloudFormation was not signalled: {error}")
        return 1
    if is_boot:
        machine.say(f"done in {machine.clock() - begin:.1f} s")
    else:
        machine.write(f"{HOME}/{machine.prefix}", "")
    return 0


def identity(machine: Machine, boot: Boot) -> str:
    """Add the instance's id, address and provider id to the facts; replace each `${name}` in the configuration."""
    document = json.loads(machine.metadata("dynamic/instance-identity/document"))
    instance, zone = document["instanceId"], document["availabilityZone"]
    boot.facts = {
        **boot.facts,
        "instanceId": instance,
        "address": document["privateIp"],
        "providerId": f"aws:///{zone}/{instance}",
    }
    boot.config = fill(boot.config, boot.facts)
    return f"{instance} in {zone}, {boot.config['role']} of {boot.config['cluster']}"


def signal_success(machine: Machine, boot: Boot) -> str:
    """Send the success signal to CloudFormation."""
    return signal(machine, boot, "SUCCESS")


def signal(machine: Machine, boot: Boot, status: str) -> str:
    """Signal CloudFormation once in the instance's life; it is no error if no resource is waiting for a signal.

    A master signals its Auto Scaling group, which waits during updates, and its wait condition, which waits while the
    cluster or the slot is created. Usually only one of them is waiting, and CloudFormation says that the other
    "cannot be signaled". An instance that has signalled a failure and works after a reboot also sends a success signal,
    for an operation that is repeated. "Signal … already exists" means that CloudFormation has received this signal, but
    its response was lost.

    Args:
        status: `SUCCESS` or `FAILURE`.

    Returns:
        A text for the log: that a signal was sent, now or before, or why CloudFormation refused it.

    Raises:
        BootError: CloudFormation cannot be reached, or the role lacks the permission.
    """
    facts = boot.facts
    last_instance, _, last_status = machine.read(SIGNALLED_FILE).partition(" ")
    if last_instance == facts["instanceId"] and last_status in ("SUCCESS", status):
        return f"signalled {last_status} before"
    refusals = [_signal_resource(machine, facts, facts["stack"], facts["resource"], status, 0)]
    if facts.get("condition"):
        stack = facts["conditionStack"]
        refusals.append(_signal_resource(machine, facts, stack, facts["condition"], status, SIGNAL_TIMEOUTS[status]))
    # If nothing has accepted the signal and something may still wait for it, the next boot signals again.
    if "" in refusals or not NOT_WAITING.match(refusals[-1]):
        machine.write(SIGNALLED_FILE, f"{facts['instanceId']} {status}")
    # "Signal with ID … for resource … already exists": CloudFormation has received it before.
    is_duplicate = (last_instance, last_status) != (facts["instanceId"], "FAILURE") and any(
        "already exists" in refusal for refusal in refusals
    )
    return f"signalled {status}" if "" in refusals or is_duplicate else refusals[-1]


def _signal_resource(machine: Machine, facts: Facts, stack: str, resource: str, status: str, seconds: float) -> str:
    """Signal a resource, and retry for `seconds` while it does not accept signals.

    CloudFormation creates a wait condition after the Auto Scaling group, and says until then that the condition "does
    not exist". An update creates the condition only after the groups of all masters have been updated, for which it
    needs this instance's signal to its group. The signal is also retried after a failed operation, which may be
    repeated.

    Returns:
        "" if CloudFormation has accepted the signal, otherwise its error message.
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
            machine.say(f"waiting until stack {stack} accepts the signal {status} for {resource}")
            reported = True
        machine.sleep(10)
