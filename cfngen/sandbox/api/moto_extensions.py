"""Extends moto 5.2 where a deployment needs calls that moto lacks, or answers unlike AWS.

- EC2 GetConsoleOutput: moto returns the same text for every instance. Here: the emulated instance's console output.
- Service Quotas: moto has the defaults of VPC only. Here: applied and default values of all quotas that matter.
- S3: moto ignores `ExpectedBucketOwner`, and has no foreign buckets. Here: 403 if the owner is not the expected one,
  and buckets that belong to another account.
- S3: moto applies a statement that denies calls without TLS to all calls. Here every call counts as made with TLS.
- Auto Scaling: moto's DescribeScalingActivities returns nothing. Here: the launches.
- EC2 and Auto Scaling: moto's timestamps are real time. Here: simulated time.
- EC2 and Elastic Load Balancing: dependencies between resources; see `dependencies`.
- Systems Manager: moto takes no public parameters. Here: clients can read those that templates can use.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from unittest import mock

from moto.autoscaling import models as autoscaling
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.common_types import TYPE_RESPONSE
from moto.core.responses import ActionResult, BaseResponse
from moto.ec2.models import amis, elastic_block_store, instances
from moto.ec2.responses.general import General
from moto.servicequotas.responses import ServiceQuotasResponse
from moto.ssm.responses import SimpleSystemManagerResponse

from cfngen.sandbox import services
from cfngen.sandbox.api.requests import Call, Refusal
from cfngen.sandbox.cloudformation.simulation import SIMULATION_START
from cfngen.sandbox.moto_patches import dependencies
from cfngen.sandbox.services import scaling_activities
from cfngen.sandbox.services.quotas import QUOTAS, Quota, override_quotas
from cfngen.sandbox.untyped import JsonDict, MotoModel, MotoResponse, Original

OWN_ACCOUNT = "123456789012"  # the account of everything in moto
OTHER_ACCOUNT = "999999999999"


@dataclass
class MotoExtensions:
    """The state of an account that moto lacks.

    Attributes:
        consoles: console output by instance id.
        quotas: quotas by service code and quota code.
        foreign_buckets: names of buckets that belong to another account.
        public_parameters: returns the public parameters of a region.
        time: returns the simulated time; `serving` sets it.
    """

    consoles: dict[str, str] = field(default_factory=dict)
    quotas: dict[tuple[str, str], Quota] = field(
        default_factory=lambda: {(quota.service, quota.code): quota for quota in QUOTAS}
    )
    foreign_buckets: set[str] = field(default_factory=set)
    public_parameters: Callable[[str], Mapping[str, str]] = lambda region: {}
    time: Callable[[], datetime.datetime] = lambda: SIMULATION_START

    def set_console_output(self, instance_id: str, text: str) -> None:
        """Set the console output of an instance."""
        self.consoles[instance_id] = text

    def set_quota(self, service: str, code: str, value: float) -> None:
        """Set this account's applied value of a quota, given its service code and its quota code."""
        previous = self.quotas[service, code]
        self.quotas[service, code] = Quota(service, code, previous.name, previous.default, applied=value)

    def check_bucket_owner(self, call: Call) -> None:
        """Check that a call's bucket belongs to this account, and to the account in `ExpectedBucketOwner`.

        Raises:
            Refusal: the bucket belongs to another account
        """
        if call.service != "s3" or not call.parameters.get("Bucket"):
            return
        is_foreign = call.parameters["Bucket"] in self.foreign_buckets
        owner = OTHER_ACCOUNT if is_foreign else OWN_ACCOUNT
        if is_foreign and call.operation == "CreateBucket":
            text = "The requested bucket name is not available. Please select a different name and try again."
            raise Refusal("BucketAlreadyExists", text, 409)
        if is_foreign or call.headers.get("x-amz-expected-bucket-owner", owner) != owner:
            raise Refusal("AccessDenied", "Access Denied", 403)

    @contextlib.contextmanager
    def patched(self) -> Iterator[None]:
        """Patch moto in this process with all extensions."""
        quotas, ssm = ServiceQuotasResponse, SimpleSystemManagerResponse
        with contextlib.ExitStack() as stack:
            for owner, name, method in (
                (AutoScalingResponse, "describe_scaling_activities", _describe_scaling_activities),
                (General, "get_console_output", self._get_console_output),
                (quotas, "get_service_quota", partial(self._get_quota, applied=True)),
                (quotas, "get_aws_default_service_quota", partial(self._get_quota, applied=False)),
                (quotas, "list_service_quotas", partial(self._list_quotas, applied=True)),
                (quotas, "list_aws_default_service_quotas", partial(self._list_quotas, applied=False)),
                (ssm, "get_parameter", partial(self._get_parameter, original=ssm.get_parameter)),
                (ssm, "get_parameters", partial(self._get_parameters, original=ssm.get_parameters)),
            ):
                replacement = _make_function(method)
                stack.enter_context(mock.patch.object(owner, name, replacement, create=not hasattr(owner, name)))
            stack.enter_context(dependencies.patch_dependencies())
            stack.enter_context(services.checking_rules())
            stack.enter_context(override_quotas(self.quotas))
            for module in (instances, amis, elastic_block_store, autoscaling):
                stack.enter_context(mock.patch.object(module, "utcnow", self._utcnow))
            yield

    def _utcnow(self) -> datetime.datetime:
        """Return the simulated time without a time zone, as moto's `utcnow` returns the real one."""
        return self.time().replace(tzinfo=None)

    def _get_console_output(self, response: MotoResponse) -> ActionResult:
        instance = response.ec2_backend.get_instance(response.querystring["InstanceId"][0])
        text = self.consoles.get(instance.id)
        encoded = base64.b64encode(text.encode()).decode() if text else None
        return ActionResult({"InstanceId": instance.id, "Output": encoded})

    def _get_quota(self, response: BaseResponse, *, applied: bool) -> TYPE_RESPONSE | str:
        request = json.loads(response.body)
        quota = self.quotas.get((request["ServiceCode"], request["QuotaCode"]))
        if quota is None or (applied and quota.applied is None):
            error = {
                "__type": "NoSuchResourceException",
                "message": "The request failed because the specified service does not exist.",
            }
            return 400, {"status": 400}, json.dumps(error)
        return json.dumps({"Quota": _describe_quota(quota, response.region, applied=applied)})

    def _list_quotas(self, response: BaseResponse, *, applied: bool) -> str:
        service = json.loads(response.body)["ServiceCode"]
        service_quotas = [quota for quota in self.quotas.values() if quota.service == service]
        visible_quotas = [quota for quota in service_quotas if not applied or quota.applied is not None]
        return json.dumps(
            {"Quotas": [_describe_quota(quota, response.region, applied=applied) for quota in visible_quotas]}
        )

    def _get_parameter(self, response: MotoResponse, original: Original) -> ActionResult:
        """Answer GetParameter, also for the public parameters."""
        name = json.loads(response.body)["Name"]
        value = self.public_parameters(response.region).get(name)
        answer: ActionResult = (
            ActionResult({"Parameter": _describe_parameter(name, value)}) if value else original(response)
        )
        return answer

    def _get_parameters(self, response: MotoResponse, original: Original) -> ActionResult:
        """Answer GetParameters, also for the public parameters."""
        result: MotoModel = original(response).result
        stored = self.public_parameters(response.region)
        unknown_to_moto = result["InvalidParameters"]
        public_names = [name for name in unknown_to_moto if name in stored]
        result["Parameters"] += [_describe_parameter(name, stored[name]) for name in public_names]
        result["InvalidParameters"] = [name for name in unknown_to_moto if name not in stored]
        return ActionResult(result)


def _make_function(method: Callable[[MotoResponse], TYPE_RESPONSE | str | ActionResult]) -> Original:
    return lambda response: method(response)  # moto looks among the functions of the class for what it answers


def _describe_scaling_activities(response: BaseResponse) -> ActionResult:
    [group] = response.querystring.get("AutoScalingGroupName", [""])
    backend = autoscaling.autoscaling_backends[OWN_ACCOUNT][response.region]
    activities = scaling_activities.recorded_activities(backend, group)
    return ActionResult({"Activities": sorted(activities, key=lambda each: each["StartTime"], reverse=True)})


def _describe_parameter(name: str, value: str) -> JsonDict:
    return {"Name": name, "Type": "String", "Value": value, "Version": 1, "DataType": "text"}


def _describe_quota(quota: Quota, region: str, *, applied: bool) -> JsonDict:
    return {
        "ServiceCode": quota.service,
        "QuotaCode": quota.code,
        "QuotaName": quota.name,
        "QuotaArn": f"arn:aws:servicequotas:{region}:{OWN_ACCOUNT}:{quota.service}/{quota.code}",
        "Value": quota.applied if applied else quota.default,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }
