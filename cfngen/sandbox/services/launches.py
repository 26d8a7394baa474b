"""RunInstances: refuses instances that cannot be launched."""

from __future__ import annotations

from cfngen.sandbox.services.launch import Launch, from_template
from cfngen.sandbox.services.launch_failures import check_launch
from cfngen.sandbox.services.launch_requests import check_request
from cfngen.sandbox.services.rules import PendingCall, rule


@rule("ec2", "RunInstances")
def check_valid_request(call: PendingCall) -> None:
    """Refuse a request that is invalid, or whose instances EC2 could not launch now."""
    request = {key: value for key, value in call.parameters.items() if value not in (None, [], "")}
    reference = request.pop("LaunchTemplate", None)
    template_data = from_template(call.backend, reference).data if reference else {}
    data = {**template_data, **request}
    zone = (request.get("Placement") or {}).get("AvailabilityZone")
    launch = Launch(
        call.backend,
        data,
        subnets=[request["SubnetId"]] if request.get("SubnetId") else [],
        zones=[zone] if zone else [],
        count=int(request.get("MinCount", 1)),
    )
    check_request(launch)
    check_launch(launch)
