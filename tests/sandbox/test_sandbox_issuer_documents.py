"""Masters of the sandbox publish the documents of the issuer of tokens, and a component's token gives it its role."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError
from sandboxed import MASTERS, Place, failures, said

from cfngen.boot.state import fill
from cfngen.cluster.iam.service_accounts import CLOUD_CONTROLLER_MANAGER
from cfngen.cluster.load import parse
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.emulated_account import open_emulated_account
from cfngen.sandbox.services import checking_rules
from cfngen.userdata.pod_role import variables

AUDIENCE = "sts.amazonaws.com"
KEYS, DISCOVERY = "openid/v1/jwks", ".well-known/openid-configuration"


@pytest.fixture(scope="module", params=["cloudFront", "bucket"])
def where(request: pytest.FixtureRequest) -> Iterator[Place]:
    cluster = parse({"serviceAccountIssuer": {"discovery": request.param}})
    with open_emulated_account(cluster.region) as account, checking_rules():
        created = Place(account, cluster)
        stack = created.create(capabilities=["CAPABILITY_NAMED_IAM"])
        assert stack.status == "CREATE_COMPLETE", failures(stack)
        # The sandbox's Kubernetes has none of the charts' and manifests' objects but those that a user looks at.
        manager = {"metadata": {"name": "cloud-controller-manager", "namespace": "kube-system"}}
        account.cluster("kubernetes").state.put("serviceaccounts", manager)
        yield created


def references(where: Place) -> Mapping[str, str]:
    return where.instances(MASTERS)[-1].boot_data.references


def documents(where: Place) -> dict[str, Any]:
    s3, bucket = client("s3", where.account.region), references(where)["issuerBucket"]
    keys = [content["Key"] for content in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]
    return {key: json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read()) for key in keys}


def test_first_master_publishes_the_documents(where: Place) -> None:
    issuer, bucket = references(where)["issuer"], references(where)["issuerBucket"]
    [line] = [line for line in said(where.instances(MASTERS)[0]) if "issuer documents" in line]
    assert f"issuer documents: wrote {KEYS} and {DISCOVERY} into s3://{bucket} (" in line
    assert documents(where)[DISCOVERY]["issuer"] == f"https://{issuer}"
    assert len(documents(where)[KEYS]["keys"]) == 1


def credentials(where: Place, audience: str = AUDIENCE) -> dict[str, Any]:
    """What the cloud controller manager's SDK does with its token and its variables."""
    kubernetes = where.account.cluster("kubernetes")
    issuer, state = kubernetes.token_issuer, kubernetes.state
    request = {"spec": {"audiences": [audience], "expirationSeconds": 86400}}
    path = "/api/v1/namespaces/kube-system/serviceaccounts/cloud-controller-manager/token"
    answer: Any = issuer.answer(state, path, json.dumps(request).encode())
    environment = {
        variable["name"]: variable["value"]
        for variable in fill(variables(where.cluster, CLOUD_CONTROLLER_MANAGER), references(where))
    }
    sts: Any = client("sts", environment["AWS_REGION"])
    assumed: dict[str, Any] = sts.assume_role_with_web_identity(
        RoleArn=environment["AWS_ROLE_ARN"], RoleSessionName="manager", WebIdentityToken=answer["status"]["token"]
    )
    return assumed


def replace_master(where: Place) -> str:
    """Terminate the master's instance; return what the next one says of the documents."""
    [*_, old] = where.instances(MASTERS)
    client("ec2", where.account.region).terminate_instances(InstanceIds=[old.id])
    where.account.advance(1)
    where.account.advance(300)
    [*_, new] = where.instances(MASTERS)
    assert new.id != old.id
    return next(line for line in said(new) if "issuer documents: " in line)


def test_components_token_gives_it_the_credentials_of_its_role(where: Place) -> None:
    assumed = credentials(where)
    assert assumed["AssumedRoleUser"]["Arn"].split("/")[1].endswith(".kube-system.cloud-controller-manager")
    assert assumed["Provider"].endswith(references(where)["issuer"])
    with pytest.raises(ClientError, match="InvalidIdentityToken"):
        credentials(where, audience="vault")


def test_next_master_writes_only_what_is_missing(where: Place) -> None:
    before = documents(where)
    assert f"the documents of https://{references(where)['issuer']} are published already" in replace_master(where)
    s3, bucket = client("s3", where.account.region), references(where)["issuerBucket"]
    s3.delete_object(Bucket=bucket, Key=KEYS)
    with pytest.raises(ClientError, match="InvalidIdentityToken"):
        credentials(where)
    assert f"wrote {KEYS} into s3://{bucket}" in replace_master(where)
    assert documents(where) == before
    credentials(where)
