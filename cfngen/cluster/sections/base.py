"""The base of every section of a cluster file, and the words that several sections use."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

Architecture = Literal["amd64", "arm64"]
Distribution = Literal["ubuntu-24.04", "ubuntu-22.04", "debian-12", "debian-13", "amazon-linux-2023"]
Plugin = Literal["vpc-routes", "cilium", "calico", "flannel", "amazon-vpc", "none"]
Topology = Literal["public", "private"]
Nat = Literal["perZone", "single", "none"]
RouteTables = Literal["all", "private", "public"]
ListItem = TypeVar("ListItem")
# The type of a list in the cluster file. Its value is a tuple, which cannot be changed. In strict mode pydantic would
# refuse YAML's list for it, so the container is lenient; the items stay strict.
List = Annotated[tuple[ListItem, ...], Field(strict=False)]


class Model(BaseModel):
    """Base of every section of the cluster file.

    Values cannot be changed and must have exactly the right type; keys are in camelCase, and unknown keys are refused.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
    )


def refuse_truth_value(value: object) -> object:
    """Return the value of a key that takes certain numbers, which pydantic then checks; to Python, true is 1.

    Raises:
        PydanticCustomError: it is true or false.
    """
    if isinstance(value, bool):
        reason = f"must be a number, not {str(value).lower()}"
        raise PydanticCustomError("cfngen", "{reason}", {"reason": reason})
    return value


NO_WINDOWS = (
    "is Windows, which cfngen does not install: its boot program needs Linux with cloud-init and systemd, and masters "
    "run Linux only; to join Windows nodes yourself see "
    "https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/adding-windows-nodes/"
)
"""Why Windows is refused, as the end of a message."""


def refuse_other_systems(distribution: object) -> object:
    """Return the value of a distribution unless the boot program cannot run on it; pydantic then checks the value.

    Raises:
        PydanticCustomError: it is a Windows, such as `windows-2022`, or a system without packages.
    """
    if any(str(distribution).lower().startswith(name) for name in ("flatcar", "bottlerocket")):
        reason = (
            f"{distribution} has neither Python nor packages, which the boot program needs; choose a distribution with "
            "packages, such as debian-13 or amazon-linux-2023"
        )
        raise PydanticCustomError("cfngen", "{reason}", {"reason": reason})
    if str(distribution).lower().startswith("windows"):
        raise PydanticCustomError("no_windows", "{value} {reason}", {"value": str(distribution), "reason": NO_WINDOWS})
    return distribution
