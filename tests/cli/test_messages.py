"""The table of message types: every message that any module defines is in it, with a renderer that takes it."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import click
import pytest

import cfngen
from cfngen.cli.application import application
from cfngen.cli.commands.lint import Linted
from cfngen.cli.commands.userdata import RoleUserData
from cfngen.cli.commands.version import Versions
from cfngen.cli.display.messages import MESSAGE_TYPES, MessageType
from cfngen.cli.several_clusters.outcomes import ClusterOutcomes
from cfngen.deploy.aws.kept_file import DeployedFile
from cfngen.deploy.messages.message import Event, Message
from cfngen.deploy.watching.progress import Progress
from cfngen.permissions.differences import PermissionDifference
from cfngen.permissions.explanations import ExplainedStatement
from cfngen.permissions.grants import Policy
from cfngen.sandbox.process.status import SandboxStatus


def messages(class_: type = Message) -> set[type]:
    """The classes of messages that cfngen defines, at any depth."""
    return {
        each for direct in class_.__subclasses__() for each in ({direct} | messages(direct)) if "kind" in vars(each)
    }


def test_every_message_is_in_the_table() -> None:
    for module in pkgutil.walk_packages(cfngen.__path__, "cfngen."):
        if module.name.startswith(("cfngen.deploy.", "cfngen.rehearse.")):
            importlib.import_module(module.name)
    defined = {each for each in messages() if each.__module__.startswith("cfngen.")}
    assert {each.message_class for each in MESSAGE_TYPES.values()} == {
        *defined,
        ExplainedStatement,
        PermissionDifference,
        Linted,
        Policy,
        RoleUserData,
        SandboxStatus,
        ClusterOutcomes,
        Versions,
    }


@pytest.mark.parametrize(("kind", "message_type"), MESSAGE_TYPES.items(), ids=list(MESSAGE_TYPES))
def test_a_message_has_its_kind_and_a_renderer_that_takes_it(kind: str, message_type: MessageType) -> None:
    class_ = message_type.message_class
    assert class_.kind == kind  # type: ignore[attr-defined]
    if class_ in (Event, Progress, RoleUserData, DeployedFile):
        assert message_type.renderer == ""  # drawn while the operation is in progress, or printed by the command
        return
    module, _, function = message_type.renderer.rpartition(".")
    render = getattr(importlib.import_module(f"cfngen.cli.render.{module}"), function)
    first, *others = inspect.signature(render).parameters.values()
    assert first.annotation == class_.__name__
    assert ("full" in [parameter.name for parameter in others]) == message_type.renderer_takes_full
    assert [each.name for each in others if each.default is each.empty] == []


def test_the_commands_of_the_table_exist() -> None:
    for line in {command for message_type in MESSAGE_TYPES.values() for command in message_type.commands}:
        command: click.Command = application
        for word in line.split():
            options = [option for parameter in command.params for option in parameter.opts]
            if isinstance(command, click.Group):
                command = command.get_command(click.Context(command), word)  # type: ignore[assignment]
                assert command is not None, line
            else:
                assert word in (*options, "cluster"), line
