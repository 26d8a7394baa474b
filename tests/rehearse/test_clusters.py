"""The parts of a cluster that are rehearsed are those that a cluster has."""

from __future__ import annotations

import functools
import json

import pytest

from cfngen.cluster.network.network_plugins import PLUGINS
from cfngen.rehearse import clusters
from cfngen.rehearse.expectations import read_recorded_expectations
from cfngen.rehearse.outlines import outline_steps, usual_minutes
from cfngen.rehearse.steps import DELETE, STEPS, UnknownStepError, ends_stack, steps_up_to
from cfngen.templates import Document, generate
from cfngen.userdata.first_stage import unpacked

ZONES = clusters.DEFAULT_ZONES


@functools.cache
def whole() -> dict[str, Document]:
    return {document.name: document for document in generate(clusters.default_cluster(ZONES))}


@functools.cache
def one_master(turn: int = 1) -> dict[str, Document]:
    return {document.name: document for document in clusters.one_master(clusters.default_cluster(ZONES), turn)}


def user_data(document: Document) -> str:
    return json.dumps(
        document.body["Resources"]["MasterALaunchTemplate"]["Properties"]["LaunchTemplateData"]["UserData"]
    )


def program(document: Document) -> str:
    [handle] = [each for name, each in document.body["Resources"].items() if "Program" in name]
    return str(handle["Metadata"]["cfngen"]["program"])


def test_roles_and_groups_are_those_of_each_plugin() -> None:
    made = {
        each.name: each
        for each in clusters.roles_and_groups({each: clusters.with_plugin(ZONES, each) for each in PLUGINS})
    }
    for plugin in ("vpc-routes", "amazon-vpc"):
        own = {each.name: each for each in generate(clusters.with_plugin(ZONES, plugin))}  # type: ignore[arg-type]
        for name in ("iam", "security-groups"):
            assert made[f"{name}-{plugin}"].body["Resources"] == own[name].body["Resources"]
    assert len(made) == 2 * len(PLUGINS) + 3


def test_a_rehearsed_master_is_a_master_that_does_less() -> None:
    for name in ("vpc", "security-groups", "iam"):
        assert one_master()[name].body == whole()[name].body
    real, rehearsed = whole()["master"].body["Resources"], one_master()["master"].body["Resources"]
    assert {name for name in real if "Program" not in name} == {name for name in rehearsed if "Program" not in name}
    differing = {name for name in real if name in rehearsed and real[name] != rehearsed[name]}
    assert differing == {"MasterALaunchTemplate"}
    # The metadata is at least of the size that a master's has, since all of its modules are in it.
    assert len(program(one_master()["master"])) >= len(program(whole()["master"]))


def test_a_rehearsed_master_only_fetches_its_program_and_signals() -> None:
    pieces = json.loads(user_data(one_master()["master"]))["Fn::Base64"]["Fn::Join"][1]
    script = "".join(piece if isinstance(piece, str) else "x" for piece in pieces)
    stage = unpacked(script)
    assert stage is not None
    assert stage.config["steps"] == {"packages": "packages.install", "program": "program.fetch"}


def test_another_turn_rolls_the_group_and_nothing_else() -> None:
    first, second = one_master(), one_master(2)
    assert [name for name in first if first[name].body != second[name].body] == ["master"]
    assert user_data(first["master"]) != user_data(second["master"])


def test_every_step_has_its_expectations() -> None:
    known = set(read_recorded_expectations())
    needed = {f"{step.stack}: {action.name}" for step in STEPS for action in step.actions}
    needed |= {f"{step.stack}: delete" for step in STEPS if step.actions[-1].verb != "plan"}
    assert needed == known


def test_steps_are_chosen_by_name_or_number() -> None:
    assert [step.name for step in steps_up_to("program")] == ["network-plugins", "change-set", "program"]
    assert steps_up_to("3") == steps_up_to("program")
    assert steps_up_to("") == STEPS
    with pytest.raises(UnknownStepError, match="no step '9'"):
        steps_up_to("9")


def test_a_stack_that_two_steps_share_is_deleted_after_the_last() -> None:
    steps = steps_up_to("roll")
    assert [ends_stack(step, steps) for step in steps] == [True, True, False, True]
    assert ends_stack(steps_up_to("program")[-1], steps_up_to("program"))


def test_what_a_step_takes_is_said_beforehand() -> None:
    plugins, plan, program_step, *_ = outline_steps(STEPS, ZONES, read_recorded_expectations())
    assert (plugins.units, plan.units) == ((), ())
    assert program_step.units == ("1 instance (t3.medium)", "40 GiB (gp3 volumes)", "1 address (public IPv4)")
    by_name = {step.name: step for step in STEPS}
    update = by_name["update"]
    assert usual_minutes(update, update.actions[0], ZONES, read_recorded_expectations()) >= 5  # the boot of a master
    assert usual_minutes(update, DELETE, ZONES, read_recorded_expectations()) >= 3  # the snapshot of its volume
