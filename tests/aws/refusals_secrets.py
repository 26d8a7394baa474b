"""KMS and Secrets Manager."""

from __future__ import annotations

import json
from typing import Any

from refusal import Refusal, ServiceCall, Update
from refusals_identity import ACCOUNT, document, refused
from small_stacks import REGION

from cfngen.sandbox.cloudformation import CloudFormation, client

KMS = "https://docs.aws.amazon.com/kms/latest/APIReference"
SECRETS = "https://docs.aws.amazon.com/secretsmanager/latest/apireference"
LOCKED_OUT = "The new key policy will not allow you to update the key policy in the future"
ROOT = {"Effect": "Allow", "Principal": {"AWS": f"{ACCOUNT}:root"}, "Action": "kms:*", "Resource": "*"}


def key(*statements: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": document(*statements), **properties}}


def policy(condition: str, words: str, source: str, *statements: dict[str, Any], evidence: Any = "seen") -> Refusal:
    return Refusal("AWS::KMS::Key KeyPolicy", condition, words, source, evidence, refused(key(*statements)))


def _key(state: str = "") -> str:
    kms = client("kms", REGION)
    identifier: str = kms.create_key(Policy=json.dumps(document(ROOT)))["KeyMetadata"]["KeyId"]
    if state == "disabled":
        kms.disable_key(KeyId=identifier)
    elif state:
        kms.schedule_key_deletion(KeyId=identifier, PendingWindowInDays=7)
    return identifier


def _use(state: str, method: str, **arguments: Any) -> ServiceCall:
    def attempt(cloud: CloudFormation) -> None:
        getattr(client("kms", REGION), method)(KeyId=_key(state), **arguments)

    return ServiceCall(attempt)


def _named_again(cloud: CloudFormation) -> None:
    secrets = client("secretsmanager", REGION)
    for _ in range(2):
        secrets.create_secret(Name="one")


def _scheduled(cloud: CloudFormation) -> None:
    secrets = client("secretsmanager", REGION)
    secrets.create_secret(Name="one")
    secrets.delete_secret(SecretId="one")
    secrets.create_secret(Name="one")


def _put(text: str, *, key_id: str = "", then: str = "") -> None:
    secrets = client("secretsmanager", REGION)
    secrets.create_secret(Name="one", **({"KmsKeyId": key_id} if key_id else {}))
    secrets.put_secret_value(SecretId="one", SecretString=text)
    if then:
        client("kms", REGION).disable_key(KeyId=key_id)
        secrets.get_secret_value(SecretId="one")


def _deleted(cloud: CloudFormation) -> None:
    secrets = client("secretsmanager", REGION)
    secrets.create_secret(Name="one")
    secrets.delete_secret(SecretId="one")
    secrets.put_secret_value(SecretId="one", SecretString="x")


def _gone_key(cloud: CloudFormation) -> None:
    _put("x", key_id=f"arn:aws:kms:{REGION}:123456789012:key/11111111-2222-3333-4444-555555555555")


def _disabled(cloud: CloudFormation) -> None:
    _put("x", key_id=_key("disabled"))


def _disabled_later(cloud: CloudFormation) -> None:
    _put("x", key_id=_key(), then="read")


def _empty(cloud: CloudFormation) -> None:
    secrets = client("secretsmanager", REGION)
    secrets.create_secret(Name="one")
    secrets.get_secret_value(SecretId="one")


def _tags(cloud: CloudFormation) -> None:
    tags = [{"Key": f"k{number}", "Value": "v"} for number in range(51)]
    client("secretsmanager", REGION).create_secret(Name="one", Tags=tags)


def _long(cloud: CloudFormation) -> None:
    _put("x" * 65_537)


def _short_window(cloud: CloudFormation) -> None:
    secrets = client("secretsmanager", REGION)
    secrets.create_secret(Name="one")
    secrets.delete_secret(SecretId="one", RecoveryWindowInDays=3)


CREATE_KEY = f"[CreateKey]({KMS}/API_CreateKey.html)"
GONE = {**ROOT, "Principal": {"AWS": f"{ACCOUNT}:role/gone"}}
ROWS = [
    policy(
        "one that lets only a role that does not exist change it",
        "Policy contains a statement with one or more invalid principals",
        "[aws-samples/siem-on-amazon-opensearch-service#32]"
        "(https://github.com/aws-samples/siem-on-amazon-opensearch-service/issues/32)",
        GONE,
    ),
    policy(
        "one principal of several does not exist",
        "Policy contains a statement with one or more invalid principals",
        "[terraform-aws-kms#30](https://github.com/terraform-aws-modules/terraform-aws-kms/issues/30)",
        ROOT,
        {**ROOT, "Principal": {"AWS": [f"{ACCOUNT}:root", f"{ACCOUNT}:user/gone"]}},
    ),
    policy(
        "one that does not let the caller change it",
        LOCKED_OUT,
        "[convox/praxis#180](https://github.com/convox/praxis/issues/180)",
        {**ROOT, "Action": ["kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey*"]},
    ),
    policy(
        "one for a service alone",
        LOCKED_OUT,
        f"{CREATE_KEY}: BypassPolicyLockoutSafetyCheck",
        {**ROOT, "Principal": {"Service": "ec2.amazonaws.com"}},
        evidence="condition documented",
    ),
    policy(
        "one for another account alone",
        LOCKED_OUT,
        f"{CREATE_KEY}: BypassPolicyLockoutSafetyCheck",
        {**ROOT, "Principal": {"AWS": "arn:aws:iam::210987654321:root"}},
        evidence="condition documented",
    ),
    policy(
        "one that denies everybody to change it",
        LOCKED_OUT,
        f"{CREATE_KEY}: BypassPolicyLockoutSafetyCheck",
        ROOT,
        {**ROOT, "Effect": "Deny", "Principal": "*", "Action": "kms:Put*"},
        evidence="condition documented",
    ),
    policy(
        "no statements", "MalformedPolicyDocumentException", f"{CREATE_KEY}: Policy", evidence="condition documented"
    ),
    Refusal(
        "AWS::KMS::Key KeyPolicy",
        "an update by which the caller locks themselves out",
        LOCKED_OUT,
        f"[PutKeyPolicy]({KMS}/API_PutKeyPolicy.html)",
        "seen",
        Update(lambda: {"It": key(ROOT)}, lambda first: {"It": key({**ROOT, "Action": "kms:Decrypt"})}, "It"),
    ),
    Refusal(
        "AWS::KMS::Key PendingWindowInDays",
        "a waiting period of three days",
        "too small or too large",
        "template reference: [AWS::KMS::Key](https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/"
        "aws-resource-kms-key.html)",
        "condition documented",
        refused(key(ROOT, PendingWindowInDays=3)),
    ),
    Refusal(
        "AWS::KMS::Key Tags",
        "51 tags",
        "LimitExceededException",
        f"[TagResource]({KMS}/API_TagResource.html)",
        "condition documented",
        refused(key(ROOT, Tags=[{"Key": f"k{number}", "Value": "v"} for number in range(51)])),
    ),
    *(
        Refusal(
            f"kms:{operation}",
            condition,
            words,
            f"[{operation}]({KMS}/API_{operation}.html), words: "
            "[segmentio/chamber#355](https://github.com/segmentio/chamber/issues/355)",
            evidence,
            tried,
        )
        for operation, condition, words, evidence, tried in (
            ("ScheduleKeyDeletion", "a key that waits already", "is pending deletion", "seen",
             _use("pending", "schedule_key_deletion")),
            ("EnableKeyRotation", "a key pending deletion", "is pending deletion", "seen",
             _use("pending", "enable_key_rotation")),
            ("GenerateDataKey", "a disabled key", "is disabled", "condition documented",
             _use("disabled", "generate_data_key", KeySpec="AES_256")),
        )
    ),
    Refusal(
        "secretsmanager:CreateSecret",
        "name in use",
        "the secret one already exists",
        f"[CreateSecret]({SECRETS}/API_CreateSecret.html): ResourceExistsException",
        "condition documented",
        ServiceCall(_named_again),
    ),
    Refusal(
        "secretsmanager:CreateSecret",
        "name of a secret that waits for its deletion",
        "You can't create this secret because a secret with this name is already scheduled for deletion",
        "[aws/copilot-cli#655](https://github.com/aws/copilot-cli/issues/655)",
        "seen",
        ServiceCall(_scheduled),
    ),
    Refusal(
        "secretsmanager:PutSecretValue",
        "key that does not exist",
        "Access to KMS is not allowed",
        "[aws/aws-cdk#7677](https://github.com/aws/aws-cdk/issues/7677), for a key without permission",
        "assumed",
        ServiceCall(_gone_key),
    ),
    Refusal(
        "secretsmanager:PutSecretValue",
        "key that is disabled",
        "Secrets Manager can't encrypt the protected secret text using the provided KMS key",
        f"[PutSecretValue]({SECRETS}/API_PutSecretValue.html): EncryptionFailure",
        "documented",
        ServiceCall(_disabled),
    ),
    Refusal(
        "secretsmanager:GetSecretValue",
        "key that is disabled",
        "Secrets Manager can't decrypt the protected secret text using the provided KMS key",
        f"[GetSecretValue]({SECRETS}/API_GetSecretValue.html): DecryptionFailure",
        "documented",
        ServiceCall(_disabled_later),
    ),
    Refusal(
        "secretsmanager:GetSecretValue",
        "secret without a value",
        "can't find the specified secret value for staging label: AWSCURRENT",
        f"[GetSecretValue]({SECRETS}/API_GetSecretValue.html): ResourceNotFoundException",
        "condition documented",
        ServiceCall(_empty),
    ),
    Refusal(
        "secretsmanager:PutSecretValue",
        "secret that waits for its deletion",
        "You can't perform this operation on the secret because it was marked for deletion",
        "[floci-io/floci#2514](https://github.com/floci-io/floci/pull/2514)",
        "seen",
        ServiceCall(_deleted),
    ),
    Refusal(
        "secretsmanager:CreateSecret",
        "51 tags",
        "You can't have more than 50 tags on a secret",
        "Secrets Manager user guide: [quotas](https://docs.aws.amazon.com/secretsmanager/latest/userguide/"
        "reference_limits.html)",
        "condition documented",
        ServiceCall(_tags),
    ),
    Refusal(
        "secretsmanager:DeleteSecret",
        "a recovery window of three days",
        "must be between 7 and 30 days",
        f"[DeleteSecret]({SECRETS}/API_DeleteSecret.html)",
        "condition documented",
        ServiceCall(_short_window),
    ),
    Refusal(
        "AWS::SecretsManager::Secret", "two tags of one key", "Duplicate tag keys",
        f"[CreateSecret]({SECRETS}/API_CreateSecret.html): Tags", "assumed",
        refused({"Type": "AWS::SecretsManager::Secret", "Properties": {
            "Tags": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}}),
    ),
    Refusal(
        "secretsmanager:PutSecretValue",
        "value of more than 65,536 bytes",
        "Member must have length less than or equal to 65536",
        f"[PutSecretValue]({SECRETS}/API_PutSecretValue.html): SecretString",
        "condition documented",
        ServiceCall(_long),
    ),
]  # fmt: skip
