"""An account in which a plan can be made, and nothing else can be changed.

CloudFormation says what an update would do only of a change set, and reads nested templates only from S3. So planning
does change something: it uploads templates, into a bucket that is made and hardened for them, makes a change set, which
for a new cluster brings an empty stack along, and removes both again. These calls are let through, the last two only
for what this plan has made itself. Every other call that is no question is refused before it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from cfngen.deploy.account import Account
from cfngen.errors import CfngenError

# Operations of the services' APIs that change nothing; botocore's models have no such mark.
_QUESTIONS = ("Describe", "Get", "Head", "List")
_NEW_STACK = "cfngen_new_stack"
_UPLOADING = frozenset(
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
    """A call that would change something was about to be made for a plan."""

    def __init__(self, service: str, operation: str) -> None:
        super().__init__(
            f"{service}:{operation} was not sent: a plan changes nothing in the account",
            hint="this is a fault of cfngen: please report it, with the output of the same command and --debug.",
        )


@dataclass(frozen=True)
class PlanningAccount(Account):
    """An account, as a caller who only plans.

    Attributes:
        made: ARNs of the change sets, and of the empty stacks, that were made for the plan.
    """

    made: set[str] = field(default_factory=set, compare=False)

    @classmethod
    def of(cls, account: Account) -> PlanningAccount:
        """Return the same account with clients of its own, which refuse what no plan may do."""
        same = {each.name: getattr(account, each.name) for each in fields(Account) if each.name != "_clients"}
        return cls(**same)

    @property
    def only_planning(self) -> bool:
        """Whether nothing may be changed here but what a plan makes and removes again."""
        return True

    def client(self, service: str) -> Any:
        """Return the boto3 client of a service in this region; always the same one."""
        known = service in self._clients
        client = super().client(service)
        if not known:
            client.meta.events.register(f"before-parameter-build.{service}", self._check)
            client.meta.events.register("after-call.cloudformation.CreateChangeSet", self._remember)
        return client

    def _check(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        """Let a call through, or not.

        Raises:
            PlanChangesError: a plan may not make it.
        """
        service, operation = model.service_model.service_name, model.name
        if operation.startswith(_QUESTIONS) or (service == "s3" and operation in _UPLOADING):
            return
        own = {
            "CreateChangeSet": True,
            "DeleteChangeSet": params.get("ChangeSetName") in self.made,
            "DeleteStack": params.get("StackName") in self.made,
        }
        if not (service == "cloudformation" and own.get(operation)):
            raise PlanChangesError(service, operation)
        context[_NEW_STACK] = params.get("ChangeSetType") == "CREATE"

    def _remember(self, http_response: Any, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        if http_response.status_code < 300:
            self.made.add(parsed["Id"])
            if context.get(_NEW_STACK):
                self.made.add(parsed["StackId"])
