"""What the deployed stack says about a cluster that nothing on this machine describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from cfngen.deploy.aws.account import Account


class LostFileError(CfngenError):
    """The stack has a cluster that no cluster file here describes: a deployment would make another one."""

    code = "cluster-file-missing"


@dataclass(frozen=True)
class RecordedCluster:
    """A cluster as its root stack describes it.

    Attributes:
        regions: the regions where the stack was looked for.
        region: its region; the first of these, if it was not found.
        name: the cluster's name; empty if no region has such a stack of a cluster.
    """

    stack_name: str
    regions: tuple[str, ...]
    region: str
    name: str = ""
    version: str = ""


def find_recorded_cluster(
    connect: Callable[[str], Account], stack_name: str, regions: Iterable[str]
) -> RecordedCluster:
    """Return the cluster of the first stack with this name, as the deployed root template describes it.

    A stack that cannot be read counts as none: then the command that needs it says why.

    Args:
        connect: returns the account in a region.

    Raises:
        CredentialsError: nobody knows whether there is a stack.
        WrongAccountError: it would be looked for in another account.
    """
    from cfngen.deploy.aws.account import WrongAccountError
    from cfngen.deploy.aws.errors import CredentialsError, translate_aws_errors
    from cfngen.deploy.aws.stacks import read_template
    from cfngen.templates.immutable_settings import VERSION_KEY, recorded_settings

    regions = tuple(dict.fromkeys(regions))
    for region in regions:
        try:
            with translate_aws_errors():
                template = read_template(connect(region), stack_name)
        except (CredentialsError, WrongAccountError):
            raise
        except CfngenError:
            continue
        if name := template.get("Metadata", {}).get("cfngen", {}).get("cluster"):
            version = str(recorded_settings(template).get(VERSION_KEY) or "")
            return RecordedCluster(stack_name, regions, region, str(name), version)
    return RecordedCluster(stack_name, regions, regions[0])
