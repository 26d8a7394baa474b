"""Emulates the boot program on an instance, step by step over simulated time, with its lines on the console.

Steps, order and log lines are those of the program in the user data: a test compares every sentence here with the boot
program's own. The durations are estimates; nothing was timed on EC2. A boot is a generator that yields the seconds to
wait. The first stage reads its configuration from the user data; the rest comes from the stack's metadata in the step
`program`, as on an instance.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation import ApiError
from cfngen.sandbox.instances.boot_state import (
    CALL_SECONDS,
    FIRMWARE_SECONDS,
    SERVICE_HINT,
    UNTIL_FAULTS_ARE_REMOVED,
    Boot,
    BootFailure,
    BootState,
    StepRun,
)
from cfngen.sandbox.instances.instance import Instance, kernel_console_lines
from cfngen.sandbox.instances.master_steps import MasterSteps
from cfngen.sandbox.instances.node_steps import NodeSteps
from cfngen.sandbox.instances.reachability import NO_BOTOCORE
from cfngen.sandbox.instances.routine_steps import DRAINING, LINES, POD_NETWORK, SECONDS, TERMINATION
from cfngen.sandbox.instances.user_data import ProgramError, substitute, with_second_stage

if TYPE_CHECKING:
    from cfngen.sandbox.instances.machines import Machines

CLOUD_INIT_SECONDS = 11.0  # seconds from the kernel to the boot program
INJECTED_FAULT_SECONDS = 5.0  # how long a step with an injected fault runs before it fails
FORMER_TITLES = {"serving certificates": "approval"}  # of steps, in the user data of earlier versions
SIGNAL_RETRY_SECONDS = 10.0  # between two signals to a wait condition that does not exist yet
# Seconds to retry a signal until its wait condition exists, by status; and the errors that say it may still come.
SIGNAL_TIMEOUTS = {"SUCCESS": 5 * 3600.0, "FAILURE": 300.0}
NOT_CREATED = re.compile(r"\w+ \S+ (does not exist|is in (\w+_FAILED|DELETE_))")
DEFAULT_HINT = "check that the resource exists"


class BootProgram:
    """The emulated boot program of one instance."""

    def __init__(self, environment: Machines, instance: Instance) -> None:
        self._state = BootState(environment, instance)
        self._instance = instance
        self._master = MasterSteps(self._state)
        self._node = NodeSteps(self._state)
        self._lacks_boto3 = False

    @property
    def steps(self) -> dict[str, Callable[[], StepRun]]:
        """The steps of the instance's role in order, by title."""
        return {
            "identity": self._read_identity,
            **{title: self._emulated_step(title) for title in self._state.configuration["steps"]},
            "signal": self._signal_success,
        }

    def _emulated_step(self, title: str) -> Callable[[], StepRun]:
        """Return the emulation of the step with this title; older boot programs name its function otherwise."""
        present_title = FORMER_TITLES.get(title, title)
        if present_title in SECONDS:
            return functools.partial(self._run_routine_step, present_title)
        return {
            "GPU": self._node.prepare_gpu,
            "first pod": self._node.run_first_pod,
            "packages": self._install_packages,
            "program": self._fetch_program,
            "downloads": self._download_files,
            "volume": self._master.attach_volume,
            "authorities": self._master.prepare_control_plane,
            "control plane": self._master.start_control_plane,
            "add-ons": self._master.apply_addons,
            "issuer documents": self._master.publish_issuer_documents,
            "join information": self._master.publish_join_information,
            "certificates": self._master.schedule_certificates,
            "pod identity webhook": self._master.start_pod_identity_webhook,
            "former webhook": self._master.remove_former_webhook,
            "masters": self._node.await_masters_upgrade,
            "join": self._node.join_cluster,
            "ready": self._node.await_node_ready,
            "pause": self._node.pause_in_update,
        }[title]

    def run(self) -> Boot:
        """Boot the instance: firmware, kernel, cloud-init, then the steps; yields the seconds to wait."""
        state = self._state
        yield FIRMWARE_SECONDS
        for line in kernel_console_lines(self._instance):
            state.environment.write_console(self._instance, line)
        yield CLOUD_INIT_SECONDS + state.jitter_seconds
        fault = state.environment.take_fault(self._instance)
        state.start_clock()
        for number, (title, run_step) in enumerate(self.steps.items(), 1):
            numbered_title, started = f"[{number}/{len(self.steps)}] {title}", state.clock.now
            if fault and fault.step == title:
                if not fault.message:
                    return  # the instance hangs: no log line, no signal
                yield INJECTED_FAULT_SECONDS
                yield from self._fail(numbered_title, started, BootFailure(fault.message, fault.hint))
                # systemd runs the program again every minute, which succeeds once the cause is gone.
                yield UNTIL_FAULTS_ARE_REMOVED
                started = state.clock.now
            try:
                outcome = yield from run_step()
            except (BootFailure, ClientError) as failure:
                yield from self._fail(numbered_title, started, failure)
                return
            state.log(f"{numbered_title}: {outcome} ({state.clock.now - started:.1f} s)")
        state.log(f"done in {state.clock.now - state.started:.1f} s")

    def _fail(self, numbered_title: str, started: float, failure: BootFailure | ClientError) -> Boot:
        hint = failure.hint if isinstance(failure, BootFailure) else DEFAULT_HINT
        elapsed = self._state.clock.now - started
        self._state.log(f"{numbered_title} FAILED after {elapsed:.1f} s: {failure}. What to do: {hint}")
        try:
            self._state.log((yield from self._signal_stacks("FAILURE")))
        except BootFailure as error:
            self._state.log(f"CloudFormation was not signalled: {error}")

    def _signal_stacks(self, status: str) -> Generator[float, None, str]:
        """Signal the Auto Scaling group and, on a master, the wait condition; retry while that does not exist yet.

        Returns:
            The text to log: the status that was signalled, or the last error if no signal was accepted.

        Raises:
            BootFailure: CloudFormation cannot be reached, or boto3 was not installed.
        """
        if self._lacks_boto3:
            raise BootFailure(NO_BOTOCORE, "")
        yield from self._state.await_service("cloudformation", "signal_resource")
        references, clock = self._state.references, self._state.clock
        # An empty text stands for an accepted signal.
        errors = [self._send_signal(references["stack"], references["resource"], status)]
        if "condition" in references:
            # Older boot programs name no stack for the condition: it is in the same stack.
            stack, condition = references.get("conditionStack", references["stack"]), references["condition"]
            deadline = clock.now + SIGNAL_TIMEOUTS[status]
            error = self._send_signal(stack, condition, status)
            while NOT_CREATED.search(error) and clock.now < deadline:
                yield SIGNAL_RETRY_SECONDS
                error = self._send_signal(stack, condition, status)
            errors.append(error)
        return f"signalled {status}" if "" in errors else errors[-1]

    def _send_signal(self, stack: str, logical_id: str, status: str) -> str:
        """Signal a resource of a stack; return CloudFormation's error, or an empty text if it accepts the signal."""
        try:
            self._state.environment.cloud.signal_resource(stack, logical_id, self._instance.id, status)
        except ApiError as error:
            return str(error)
        return ""

    def _read_identity(self) -> StepRun:
        yield 0.1
        configuration, instance = self._state.configuration, self._instance
        return f"{instance.id} in {instance.zone}, {configuration['role']} of {configuration['cluster']}"

    def _run_routine_step(self, title: str) -> StepRun:
        """Run a step that takes time and logs a line; its only effect may be to start the service for terminations."""
        yield SECONDS[title]
        if title == POD_NETWORK and self._state.configuration["podNetwork"]["interfaces"]:
            yield from self._state.await_service("ec2", "describe_instance_types")
        if title in (DRAINING, TERMINATION):
            self._instance.runs_termination_service = True
        return LINES[title](self._state.configuration, self._instance) if title in LINES else "done"

    def _install_packages(self) -> StepRun:
        yield 12.4 + self._state.jitter_seconds
        # Amazon Linux images lack iptables as well as boto3.
        missing_programs = ["iptables"] if "amazon" in self._instance.image.lower() else []
        package_names = [self._state.configuration["packages"][program][1] for program in missing_programs]
        package_names.append("python3-boto3")
        names = ", ".join(package_names)
        self._lacks_boto3 = True
        # Commands before the boot may set a proxy, or other repositories.
        if not self._state.configuration.get("before"):
            yield from self._state.wait(
                "packages " + names,
                lambda: self._state.connections.why_no_packages(package_names),
                "check that the instance can reach its package mirror",
            )
        self._lacks_boto3 = False
        return "installed " + names

    def _fetch_program(self) -> StepRun:
        """Fetch the second stage from the stack's metadata; wait while it is missing or has another digest."""
        resource = self._state.configuration["program"]["resource"]
        first_stage = self._instance.boot_data

        def why_not_fetched() -> str:
            if unreachable := self._state.connections.why_no_service("cloudformation"):
                goal = "describe_stack_resource"
                raise BootFailure(f"waited {CALL_SECONDS:.0f} s for {goal}: {unreachable}", SERVICE_HINT)
            try:
                self._instance.boot_data = with_second_stage(first_stage, self._state.environment.read_metadata)
            except (ApiError, ProgramError) as error:
                return str(error)
            return ""

        yield 0.4
        yield from self._state.wait(
            f"the program in {resource}", why_not_fetched, "check that the stack still has this resource"
        )
        self._state.configuration = substitute(self._instance.boot_data.configuration, self._instance.facts)
        return f"{resource} unpacked"

    def _download_files(self) -> StepRun:
        for asset in self._state.configuration["assets"]:
            url = asset["url"]
            why_not = functools.partial(self._state.connections.why_no_download, url)
            yield from self._state.wait("download", why_not, f"check that the instance can reach {url}")
        yield 18.6 + self._state.jitter_seconds
        files = len(self._state.configuration["assets"])
        return f"fetched {files} of {files} files"

    def _signal_success(self) -> StepRun:
        yield 0.3
        return (yield from self._signal_stacks("SUCCESS"))
