"""Three masters that begin, and end, to use an issuer of tokens: whatever master answers, no token and no role fails.

Every twenty seconds of each update, also in the middle of a replacement, each running API server signs a token for the
Kubernetes API as its own configuration says, and each other one has to accept it for the hour that it is valid. And
each add-on whose manifests one of the masters may have applied has to get credentials: by a token that any of these
API servers signs, from AWS STS; or else from the masters' role.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from sandboxed import Place, place
from several_masters import three
from web_identities import AUDIENCE, assume

from cfngen.cluster.iam.issuer_stages import issuer_stages, issuer_state
from cfngen.cluster.iam.service_accounts import CLOUD_CONTROLLER_MANAGER, EBS_CSI_DRIVER, ServiceAccount, role_name
from cfngen.cluster.model import Cluster
from cfngen.sandbox.cloudformation import Stack, client
from cfngen.sandbox.instances.instance import Instance
from cfngen.sandbox.kubernetes.service_account_tokens import TokenIssuer, token_issuer
from cfngen.sandbox.services import checking_rules, json_web_tokens

pytestmark = pytest.mark.drill

OFF = three("nodeGroups=[]")
ON = three("nodeGroups=[]", "serviceAccountIssuer={}", 'iam.serviceAccounts=[{"namespace": "shop", "name": "web"}]')
HOUR = 3600
SAMPLE_SECONDS = 20.0
# An action that only the component needs, and no step of the boot program.
ACTIONS: Mapping[ServiceAccount, str] = {
    CLOUD_CONTROLLER_MANAGER: "elasticloadbalancing:CreateLoadBalancer",
    EBS_CSI_DRIVER: "ec2:CreateVolume",
}


@dataclass
class Watched:
    """A cluster that is watched while it is updated.

    Attributes:
        where: the account.
        stack: the cluster's stack.
        signed: by issuer, when the last token of it was signed, in seconds of the clock.
        mixed: sets of issuers that signed at the same moment, where there were several.
        ways: by component, the ways in which it got credentials.
        failures: what failed, with the time.
    """

    where: Place
    stack: Stack
    signed: dict[str, float] = field(default_factory=dict)
    mixed: list[set[str]] = field(default_factory=list)
    ways: dict[ServiceAccount, set[str]] = field(default_factory=dict)
    samples: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def now(self) -> float:
        return self.where.account.cloud.clock.now

    def update(self, cluster: Cluster) -> None:
        """Update the cluster, and watch it meanwhile."""
        self.where.begin_update(cluster)
        self._watch()
        self.where.account.cloud.wait(self.stack)
        assert self.stack.status == "UPDATE_COMPLETE", self.stack.reason
        self.sample()

    def _watch(self) -> None:
        self.sample()
        if self.stack.status == "UPDATE_IN_PROGRESS":
            self.where.account.cloud.clock.schedule(SAMPLE_SECONDS, self._watch)

    def sample(self) -> None:
        """Look at all API servers and add-ons now."""
        self.samples += 1
        servers = {master.id: self._api_server(master) for master in self._running_masters()}
        for server in servers.values():
            self.signed[server.issuers[0]] = self.now
        signing = {server.issuers[0] for server in servers.values()}
        if len(signing) > 1:
            self.mixed.append(signing)
        valid = [issuer for issuer, time in self.signed.items() if self.now < time + HOUR]
        for master_id, server in servers.items():
            self._expect(set(valid) <= set(server.issuers), f"{master_id} refuses one of {valid}")
        configurations = [master.boot_data.configuration for master in self._running_masters()]
        manifests = {json.dumps([item["manifests"], item["addons"]]) for item in configurations}
        # Masters of one configuration sign alike, so one of each is asked.
        signers = list({server.issuers[0]: server for server in servers.values()}.values())
        for account in ACTIONS:
            for uses_role in {f":role/{role_name(ON, account)}" in text for text in manifests}:
                self._check_credentials(account, signers, uses_role=uses_role)

    def _running_masters(self) -> list[Instance]:
        """The masters whose API servers run and whose instances do."""
        cluster = self.where.account.cluster("kubernetes")
        instances = self.where.account.machines.instances
        # From moto's backend: EC2's API takes too long for each sample.
        running = self.where.account.machines.running_ids()
        return [instances[master_id] for master_id in cluster.members.values() if master_id in running]

    def _api_server(self, master: Instance) -> TokenIssuer:
        """What the API server of a master signs and accepts, as kubeadm's configuration on it says."""
        documents = json.dumps(master.boot_data.configuration["kubeadm"])
        if "issuer" in master.boot_data.references:
            documents = documents.replace("${issuer}", master.boot_data.references["issuer"])
        [configuration] = [item for item in json.loads(documents) if item["kind"] == "ClusterConfiguration"]
        return token_issuer(configuration, self.where.account.cluster("kubernetes").bundle, "https://127.0.0.1")

    def _check_credentials(self, account: ServiceAccount, signers: list[TokenIssuer], *, uses_role: bool) -> None:
        """Check that a component gets credentials, with its role or with that of the masters."""
        self.ways.setdefault(account, set()).add("role" if uses_role else "instance")
        if not uses_role:
            self._expect(self._masters_may(ACTIONS[account]), f"the masters' role lacks {ACTIONS[account]}")
            return
        for signer in signers:
            self._assume(self._token(signer, account), role_name(ON, account))

    def _assume(self, token: str, role: str) -> None:
        """Get credentials of a role from AWS STS."""
        try:
            assume(token, f"arn:aws:iam::123456789012:role/{role}")
        except ClientError as error:
            self._expect(False, f"{role}: {error}")

    def _token(self, server: TokenIssuer, account: ServiceAccount) -> str:
        """A token of a service account for AWS STS."""
        issued = int(self.where.account.cloud.clock.time.timestamp())
        claims = {
            "iss": server.issuers[0],
            "sub": account.subject,
            "aud": [AUDIENCE],
            "iat": issued,
            "nbf": issued,
            "exp": issued + HOUR,
        }
        return json_web_tokens.sign(claims, server.private_key)

    def _masters_may(self, action: str) -> bool:
        """Whether the masters' role allows an action, in a policy of its own or an attached one."""
        iam = client("iam", self.where.account.region)
        role = self.stack.resources["MasterRole"].physical_id
        documents = [
            iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
            for name in iam.list_role_policies(RoleName=role)["PolicyNames"]
        ]
        for policy in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
            version = iam.get_policy(PolicyArn=policy["PolicyArn"])["Policy"]["DefaultVersionId"]
            found = iam.get_policy_version(PolicyArn=policy["PolicyArn"], VersionId=version)
            documents.append(found["PolicyVersion"]["Document"])
        return any(
            fnmatch.fnmatchcase(action, pattern)
            for document in documents
            for statement in document["Statement"]
            for pattern in _as_list(statement["Action"])
        )

    def _expect(self, holds: bool, text: str) -> None:
        if not holds:
            self.failures.append(f"{self.now:.0f} s: {text}")


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


@contextlib.contextmanager
def watched(cluster: Cluster) -> Iterator[Watched]:
    """A cluster that is created and will be watched."""
    with place() as where, checking_rules():
        where = replace(where, cluster=cluster)
        stack = where.create()
        assert stack.status == "CREATE_COMPLETE", stack.reason
        yield Watched(where, stack)


def test_through_all_states_and_back() -> None:
    with watched(OFF) as cluster:
        for state in issuer_stages(issuer_state(OFF), ON):
            cluster.update(state)
        assert cluster.failures == []
        *others, last = issuer_stages(issuer_state(ON), OFF)
        for state in others:
            cluster.update(state)
        # As `cfngen deploy` waits before the last update.
        cluster.where.account.advance(HOUR)
        cluster.update(last)
        assert cluster.failures == []
        assert cluster.ways == {account: {"instance", "role"} for account in ACTIONS}
        # API servers of two configurations signed at the same moment, on the way there and back.
        assert len(cluster.mixed) > 10
        assert cluster.samples > 100
        issuer, *_ = set().union(*cluster.mixed) - {"https://kubernetes.default.svc.cluster.local"}
        assert issuer.endswith(".cloudfront.net")


@pytest.mark.parametrize(("before", "after"), [(OFF, ON), (ON, OFF)], ids=["on at once", "off at once"])
def test_what_the_states_are_for(before: Cluster, after: Cluster) -> None:
    """Without them API servers that are not replaced yet refuse tokens: the checks of this module see it."""
    with watched(before) as cluster:
        cluster.sample()
        assert cluster.failures == []
        cluster.update(after)
        assert any(" refuses one of " in failure for failure in cluster.failures)
