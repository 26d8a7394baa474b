"""How an operator gets at the Kubernetes API of a deployed cluster: where it is, and as whom.

The stack says where; the certificate authority in its secret makes anybody who may read it an administrator, for as
long as they ask for. Nothing that is made here outlives the process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from cfngen.deploy.access.api_connection import Endpoint
from cfngen.deploy.access.authorities import Authority, read_authority
from cfngen.deploy.access.certificates import LONGEST_NAME, Identity, issue
from cfngen.deploy.access.kubernetes import Kubernetes
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import translate_aws_errors
from cfngen.deploy.stacks import NESTED, StackView, existing, find, resources
from cfngen.errors import CfngenError

ENDPOINT, CA_SECRET, JOIN_SECRET = "ApiEndpoint", "CaSecretArn", "JoinSecretArn"
ALLOWED = "ApiAllowedCidr"
OCCASION = timedelta(minutes=10)  # life of a certificate for reading something now
_CALLER = re.compile(r"arn:[^:]+:(?:iam|sts)::\d*:(?:assumed-role/|federated-user/|user/)?(?P<name>.+)")

Override = Callable[[str], str]
"""Given the API's URL, returns the one where it really listens, or an empty text."""


class NoEndpointError(CfngenError):
    """The stack does not say (yet) where the API is."""


def nowhere(endpoint: str) -> str:
    """Return that the API listens at its own URL."""
    return ""


def root(account: Account, stack_name: str) -> StackView:
    """Return the cluster's root stack.

    Raises:
        NoStackError: there is none.
        AwsError: a call failed.
    """
    with translate_aws_errors():
        return existing(account, stack_name)


def outputs(account: Account, stack: StackView) -> Mapping[str, str]:
    """Return the outputs of a root stack and of those it nests.

    A root that is being created, or whose creation has failed, has no outputs yet, while its children may.

    Raises:
        AwsError: a call failed.
    """
    found = dict(stack.outputs)
    if ENDPOINT in found and CA_SECRET in found:
        return found
    with translate_aws_errors():
        for resource in resources(account, stack.id):
            if resource.type == NESTED and resource.physical_id:
                child = find(account, resource.physical_id)
                found = {**(child.outputs if child else {}), **found}
    return found


def endpoint(stack: StackView, values: Mapping[str, str], override: Override = nowhere) -> Endpoint:
    """Return where the API of a cluster is.

    Args:
        stack: its root stack.
        values: what `outputs` returned.
        override: where it really listens.

    Raises:
        NoEndpointError: the stack does not say.
    """
    url = values.get(ENDPOINT, "")
    if not url:
        raise NoEndpointError(_missing(stack, ENDPOINT), hint="`cfngen status` shows how far the cluster is.")
    return Endpoint(url, override(url), stack.parameters.get(ALLOWED, ""))


def authority(account: Account, stack: StackView, values: Mapping[str, str]) -> Authority:
    """Return the certificate authority of a cluster.

    Raises:
        NoEndpointError: the stack does not say which secret it is in.
        CfngenError: as `read_authority`.
    """
    arn = values.get(CA_SECRET, "")
    if not arn:
        raise NoEndpointError(_missing(stack, CA_SECRET), hint="`cfngen status` shows how far the cluster is.")
    return read_authority(account, arn)


def connection(where: Endpoint, found: Authority, caller: str, now: datetime) -> Kubernetes:
    """Return a connection as an administrator, with a certificate made for it.

    Args:
        where: where the API is.
        found: the cluster's authority.
        caller: ARN of who calls.
        now: the time.

    Raises:
        CertificateError: the authority has ended.
    """
    duration = min(OCCASION, max(found.ends - now, timedelta(seconds=1)))
    client = issue(found.pair, Identity(user_name(caller)), now=now, duration=duration)
    return Kubernetes(where, found.pair.certificate, client)


def user_name(caller: str) -> str:
    """Return the name by which Kubernetes' audit log shows an AWS caller, e.g. `Admin/alice@cfngen`.

    Args:
        caller: the caller's ARN.
    """
    found = _CALLER.fullmatch(caller)
    name, suffix = found["name"] if found else caller, "@cfngen"
    room = LONGEST_NAME - len(suffix)
    if len(name) > room:
        # The end of an ARN is what tells persons apart: the session, or the user behind a path.
        name = name.rpartition("/")[2][-room:]
    return name + suffix


def _missing(stack: StackView, output: str) -> str:
    return f"the stack {stack.name} ({stack.status}) has no output {output}"
