"""Copies of the certificate authorities: what is read, what is written where, and what is refused."""

from __future__ import annotations

import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from answers import Answers
from recorded import RefusedError

from cfngen.cluster.naming.names import authority_copy_prefix
from cfngen.deploy.messages.message import Message, Step
from cfngen.deploy.operations.deletion import authority_copies
from cfngen.deploy.operations.deletion.authority_copies import AuthoritySecret, CopyError, UnreadableAuthoritiesError
from cfngen.deploy.plan.deletion.plan import AuthorityCopy

ONE = AuthoritySecret("arn-of-a-secret-for-one", '{"ca.crt": "certificate"}')
READ = "secretsmanager:GetSecretValue"


@pytest.mark.parametrize(
    ("text", "kept"),
    [('{"ca.crt": "x"}', True), ("{}", False), ("", False), (" {} \n", False), ("\n", False), (" {", True)],
)
def test_what_a_master_has_written_is_kept(aws: Answers, text: str, kept: bool) -> None:
    aws.given[READ] = {"SecretString": text} if text else {}
    assert authority_copies.read_authorities(aws.account, [ONE.arn], must_be_readable=True) == (
        (AuthoritySecret(ONE.arn, text),) if kept else ()
    )
    assert aws.named(READ) == [{"SecretId": ONE.arn}]


@pytest.mark.parametrize("code", ["ResourceNotFoundException", "InvalidRequestException"])
@pytest.mark.parametrize("needed", [True, False])
def test_a_secret_without_a_value_or_on_its_way_out_holds_nothing(aws: Answers, code: str, needed: bool) -> None:
    aws.given[READ] = RefusedError(code)
    assert authority_copies.read_authorities(aws.account, [ONE.arn], must_be_readable=needed) == ()


@pytest.mark.parametrize("code", ["AccessDeniedException", "DecryptionFailure"])
def test_who_may_not_read_it_can_only_give_it_up(aws: Answers, code: str) -> None:
    aws.given[READ] = RefusedError(code, "not you")
    with pytest.raises(
        UnreadableAuthoritiesError, match=f"user/operator has no permission to read {ONE.arn}: not you"
    ) as refused:
        authority_copies.read_authorities(aws.account, [ONE.arn], must_be_readable=True)
    assert "--authorities destroy" in refused.value.hint
    assert authority_copies.read_authorities(aws.account, [ONE.arn], must_be_readable=False) == ()


@pytest.mark.parametrize("needed", [True, False])
def test_any_other_refusal_is_an_error(aws: Answers, needed: bool) -> None:
    aws.given[READ] = RefusedError("InternalServiceError")
    with pytest.raises(Exception, match="InternalServiceError"):
        authority_copies.read_authorities(aws.account, [ONE.arn], must_be_readable=needed)


def test_a_secret_that_is_not_text_holds_nothing(aws: Answers) -> None:
    aws.given[READ] = {"ARN": "arn-of-a-secret-for-one"}
    assert authority_copies.read_authorities(aws.account, [ONE.arn], must_be_readable=True) == ()


def kept(aws: Answers, how: AuthorityCopy, *held: AuthoritySecret) -> tuple[Any, list[Message]]:
    said: list[Message] = []
    return authority_copies.copy_authorities(aws.account, "one", held or [ONE], how, said.append), said


def test_a_copy_in_a_file_is_for_its_owner_and_may_be_there_already(aws: Answers, tmp_path: Path) -> None:
    path = tmp_path / "authorities.json"
    for _ in range(2):
        [copy], said = kept(aws, AuthorityCopy("file", path))
        assert (copy.kind, copy.id, copy.command) == ("copy of the certificate authorities", str(path), "")
        assert said == [Step(f"copying the certificate authorities to {path}")]
        assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == (ONE.text, 0o600)
    path.write_text("something else")
    with pytest.raises(CopyError, match="it exists, with other content"):
        kept(aws, AuthorityCopy("file", path))
    assert (path.read_text(), aws.calls) == ("something else", [])


def test_a_file_that_cannot_be_made_is_told_with_its_reason(aws: Answers, tmp_path: Path) -> None:
    with pytest.raises(CopyError, match="No such file or directory; nothing was deleted") as refused:
        kept(aws, AuthorityCopy("file", tmp_path / "missing" / "authorities.json"))
    assert "--authorities-file" in refused.value.hint


def test_a_copy_in_a_secret_is_deleted_at_once_and_can_be_brought_back(aws: Answers) -> None:
    aws.given["secretsmanager:CreateSecret"] = {"ARN": "arn-of-the-copied-secret"}
    aws.given["secretsmanager:DeleteSecret"] = {"DeletionDate": datetime(2026, 1, 31, 12, tzinfo=UTC)}
    [copy], said = kept(aws, AuthorityCopy())
    name = "cfngen/one/authorities-20260101T000000Z"
    assert name.startswith(authority_copy_prefix("one"))
    about = f"Certificate authorities of the deleted Kubernetes cluster one, copied from {ONE.arn}"
    [created] = aws.named("secretsmanager:CreateSecret")
    created.pop("ClientRequestToken", None)
    assert created == {"Name": name, "Description": about, "SecretString": ONE.text}
    assert aws.named("secretsmanager:DeleteSecret") == [
        {"SecretId": "arn-of-the-copied-secret", "RecoveryWindowInDays": 30}
    ]
    assert (copy.kind, copy.id, copy.cost) == (
        "copy of the certificate authorities",
        name,
        "not billed while its deletion is pending",
    )
    assert copy.why.startswith("deleted on 2026-01-31; ")
    assert f"restore-secret --secret-id {name} --region us-west-2`" in copy.why
    assert copy.command == (
        f"aws secretsmanager delete-secret --force-delete-without-recovery --secret-id {name} --region us-west-2"
    )
    assert said == [Step(f"copying the certificate authorities to the secret {name}")]


def test_who_destroys_them_keeps_nothing(aws: Answers) -> None:
    assert kept(aws, AuthorityCopy("destroy")) == ((), [])
    assert aws.calls == []


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (AuthorityCopy(), "can be restored for 30 days"),
        (AuthorityCopy("file", Path("copy.json")), "a copy is written to copy.json, readable only by you"),
        (AuthorityCopy("destroy"), "no copy is kept: no snapshot, of a volume or of etcd, can ever be restored"),
    ],
)
def test_what_becomes_of_them_is_a_consequence(how: AuthorityCopy, words: str) -> None:
    assert words in how.consequence
