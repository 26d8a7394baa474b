"""Checks that an existing KMS key can encrypt the cluster's secrets.

Otherwise the creation fails once the first master writes the certificate authorities. States and key types: "Key states
of AWS KMS keys", AWS KMS Developer Guide; "Secrets Manager supports only symmetric encryption KMS keys", AWS Secrets
Manager User Guide, "Secret encryption and decryption".
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Mapping
from typing import Any

from cfngen.cluster.iam.existing_roles import existing_roles
from cfngen.cluster.model import Cluster
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.messages import Notice

_KEY = "secrets.kmsKey"
_ENCRYPTION, _SYMMETRIC = "ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT"
_HINT = 'docs/operate/security.md shows the key policy ("Your own key").'


def find_problems(account: Account, cluster: Cluster) -> Iterator[str]:
    """Yield a problem if the key does not exist or cannot encrypt secrets; none if it cannot be read."""
    arn = cluster.secrets.kms_key
    if not arn:
        return
    try:
        with translate_aws_errors():
            key = account.client("kms").describe_key(KeyId=arn)["KeyMetadata"]
    except AwsError as error:
        if error.aws_code == "NotFoundException":
            yield f"{_KEY}: there is no key {arn}; correct the ARN"
        return
    state_problem = _state_problem(arn, key)
    if state_problem:
        yield f"{_KEY}: {state_problem}"
        return
    # KMS may leave out what a symmetric key for encryption has (KeyMetadata, AWS KMS API Reference: not required).
    usage, spec = key.get("KeyUsage", _ENCRYPTION), key.get("KeySpec", _SYMMETRIC)
    if (usage, spec) != (_ENCRYPTION, _SYMMETRIC):
        yield (
            f"{_KEY}: {arn} is no symmetric key for encryption ({spec}, {usage}), which Secrets Manager needs; use "
            "another key"
        )


def _state_problem(arn: str, key: Mapping[str, Any]) -> str:
    """Return why a key of any kind cannot be used; empty if it can."""
    if key.get("KeyManager") == "AWS":
        return f"{arn} is managed by AWS; use a customer managed key, or remove the setting"
    if key["KeyState"] == "PendingDeletion":
        return f"{arn} is going to be deleted; cancel that (aws kms cancel-key-deletion), or use another key"
    if key["KeyState"] != "Enabled":
        return f"{arn} is in the state {key['KeyState']}; enable it, or use another key"
    return ""


def notices(account: Account, cluster: Cluster) -> Iterator[Notice]:
    """Yield a notice if the key's policy is not known to let the instances' roles use the key."""
    arn = cluster.secrets.kms_key
    if not arn:
        return
    try:
        with translate_aws_errors():
            # "default" is the name of every key policy (GetKeyPolicy, AWS KMS API Reference).
            text = account.client("kms").get_key_policy(KeyId=arn, PolicyName="default")["Policy"]
    except AwsError as error:
        yield Notice(f"{_KEY}: whether the key's policy lets instances use it is not known: {error}", _HINT)
        return
    principals = _principals_that_may_decrypt(json.loads(text))
    if principals & {"*", account.id, f"arn:{account.partition}:iam::{account.id}:root"}:
        return
    roles = {existing.role for _, existing in existing_roles(cluster)}
    if roles and roles <= principals:
        return
    yield Notice(
        f"{_KEY}: the key's policy neither leaves access to the IAM policies of account {account.id} nor names the "
        "roles of masters and nodes, which must be allowed kms:Decrypt, and masters kms:GenerateDataKey",
        _HINT,
    )


def _principals_that_may_decrypt(policy: Mapping[str, Any]) -> set[str]:
    """Return the AWS principals that a key policy lets decrypt; conditions are taken for met."""
    principals: set[str] = set()
    for statement in _as_list(policy.get("Statement", ())):
        actions = _as_list(statement.get("Action", ()))
        if statement.get("Effect") == "Allow" and any(
            fnmatch.fnmatchcase("kms:decrypt", action.lower()) for action in actions
        ):
            named = statement.get("Principal", {})
            principals.update(_as_list(named.get("AWS", ()) if isinstance(named, Mapping) else named))
    return principals


def _as_list(value: Any) -> list[Any]:
    """Return a value of a policy as a list: a single one may stand without brackets."""
    return [value] if isinstance(value, (str, Mapping)) else list(value)
