"""An account for planning: its boto3 clients refuse every call that a plan does not need.

CloudFormation previews an update only through a change set, and reads nested templates only from S3. So planning makes
some changes: it uploads templates (creating and hardening the bucket if necessary), and creates a change set, which for
a new cluster includes an empty stack. Change set and stack are deleted afterwards. These calls are allowed, deletions
only for what this plan has created. Every other call that is not read-only is refused before it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.types import AwsArguments, Client
from cfngen.errors import CfngenError

# Prefixes of API operations that change nothing; botocore's models do not mark them as read-only. `Simulate` is that of
# IAM's policy simulator.
_READ_ONLY_PREFIXES = ("Describe", "Get", "Head", "List", "Simulate")
_CREATES_EMPTY_STACK = "cfngen_new_stack"  # key in botocore's request context: whether the call creates an empty stack
_UPLOAD_OPERATIONS = frozenset(
    {
        "CreateBucket",
        "PutBucketEncryption",
        "PutBucketLifecycleConfiguration",
        "PutBucketOwnershipControls",
        "PutBucketPolicy",
        "PutBucketTagging",
        "PutBucketVersioning",
        "PutObject",
        "PutPublicAccessBlock",
    }
)


class PlanChangesError(CfngenError):
    """A plan was about to make a call that changes something."""

    code = "plan-would-change"

    def __init__(self, service: str, operation: str) -> None:
        super().__init__(
            f"{service}:{operation} was not sent: a plan changes nothing in the account",
            hint="this is a bug in cfngen: please report it, with the output of the same command and --debug.",
        )


@dataclass(frozen=True)
class PlanningAccount(Account):
    """An account whose clients only allow the calls of a plan.

    Attributes:
        created_arns: ARNs of the change sets and empty stacks that were created for the plan.
        created_buckets: the buckets that were created for it, and stay.
        uploaded: the bucket of each template that was uploaded for it, and stays.
    """

    created_arns: set[str] = field(default_factory=set, compare=False)
    created_buckets: list[str] = field(default_factory=list, compare=False)
    uploaded: list[str] = field(default_factory=list, compare=False)

    @classmethod
    def of(cls, account: Account) -> PlanningAccount:
        """Return the same account with separate clients, which refuse all calls that a plan does not need."""
        values = {
            attribute.name: getattr(account, attribute.name)
            for attribute in fields(Account)
            if attribute.name != "_clients"
        }
        return cls(**values)

    @property
    def only_planning(self) -> bool:
        """Whether this account may only be used for a plan, which changes nothing permanently."""
        return True

    def client(self, service: str) -> Client:
        """Return the boto3 client of a service, which refuses calls that a plan does not need; it is created once."""
        is_cached = service in self._clients
        client = super().client(service)
        if not is_cached:
            client.meta.events.register(f"before-parameter-build.{service}", self._refuse_unneeded_call)
            client.meta.events.register("after-call.cloudformation.CreateChangeSet", self._record_created_arns)
        return client

    def _refuse_unneeded_call(self, params: AwsArguments, model: Any, context: AwsArguments, **_: object) -> None:
        """Raise an error for a call that a plan does not need; botocore calls this before it sends the request.

        Args:
            context: values that botocore keeps for the call, and passes to `_record_created_arns`.
        """
        service, operation = model.service_model.service_name, model.name
        if operation.startswith(_READ_ONLY_PREFIXES):
            return
        if service == "s3" and operation in _UPLOAD_OPERATIONS:
            left = {"CreateBucket": self.created_buckets, "PutObject": self.uploaded}
            left.get(operation, []).append(params["Bucket"])
            return
        is_allowed_by_operation = {
            "CreateChangeSet": True,
            "DeleteChangeSet": params.get("ChangeSetName") in self.created_arns,
            "DeleteStack": params.get("StackName") in self.created_arns,
        }
        if not (service == "cloudformation" and is_allowed_by_operation.get(operation)):
            raise PlanChangesError(service, operation)
        context[_CREATES_EMPTY_STACK] = params.get("ChangeSetType") == "CREATE"

    def _record_created_arns(
        self, http_response: Any, parsed: AwsArguments, context: AwsArguments, **_: object
    ) -> None:
        """Record the ARNs of a created change set and of its empty stack, so that the plan may delete them."""
        is_successful = http_response.status_code < 300
        if is_successful:
            self.created_arns.add(parsed["Id"])
            if context.get(_CREATES_EMPTY_STACK):
                self.created_arns.add(parsed["StackId"])
