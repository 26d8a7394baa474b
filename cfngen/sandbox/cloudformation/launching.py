"""Launches of a group that EC2 refuses: the group then does not come to have the instances it should.

Auto Scaling tells of them in its activities, and CloudFormation of the last of these (eksctl-io/eksctl#8383; Auto
Scaling user guide, "Troubleshoot: EC2 instance launch failures"). What the launch template itself is refused for, the
call that names it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.exceptions import EC2ClientError

from cfngen.sandbox.cloudformation import metadata_tags, signals
from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.services import Refused
from cfngen.sandbox.services.launches import check_launch, check_request, from_template

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region
    from cfngen.sandbox.cloudformation.stack import Resource


def check(service: Region, resource: Resource) -> None:
    """Refuse a group whose instances cannot be launched.

    Args:
        service: the region.
        resource: an Auto Scaling group that is about to be made or changed.

    Raises:
        ResourceError: as the group's last scaling activity tells it
    """
    group = resource.properties
    if "LaunchTemplate" not in group:
        return
    present = len(signals.instances(service, resource.physical_id)) if resource.physical_id else 0
    count = int(group.get("DesiredCapacity", group.get("MinSize", 0))) - present
    try:
        launch = from_template(
            get_backend("ec2")[DEFAULT_ACCOUNT_ID][service.region],
            group["LaunchTemplate"],
            subnets=group.get("VPCZoneIdentifier", ()),
            zones=group.get("AvailabilityZones", ()),
            count=count,
        )
        check_request(launch)
    except (Refused, EC2ClientError):
        return  # Auto Scaling refuses the call
    metadata_tags.check_launches(service, group)
    if count <= 0:
        return
    try:
        check_launch(launch)
    except Refused as refused:
        activity = f"{refused.message.rstrip('.')}. Launching EC2 instance failed."
        raise ResourceError(f"Group did not stabilize. Last scaling activity: {activity}") from refused
