"""What becomes of the certificate authorities: a copy is kept, unless somebody gives them up for good."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from cloud import Cloud
from clusters import inventory, resources
from deleting import REGION, Operator, created

from cfngen.deploy.aws.account import connect
from cfngen.deploy.operations.deletion.authority_copies import CopyError, UnreadableAuthoritiesError
from cfngen.deploy.operations.deletion.report import Deleted
from cfngen.deploy.plan.deletion.plan import AuthorityCopy
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource

pytestmark = pytest.mark.drill

BUNDLE = json.dumps({"ca.crt": "certificate", "ca.key": "key"})


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(connect(cloud.session, REGION, clock=cloud.clock))


def initialised(cloud: Cloud) -> Any:
    """A cluster whose first master has written its certificate authorities."""
    stack = created(cloud)
    secret = resources(stack)["CaSecret"].physical_id
    cloud.client("secretsmanager").put_secret_value(SecretId=secret, SecretString=BUNDLE)
    return stack


def kept(deleted: Deleted) -> dict[str, RetainedResource]:
    """What is left of a cluster with one master, by kind."""
    return {each.kind: each for each in deleted.retained}


def test_by_default_they_can_be_brought_back(cloud: Cloud, operator: Operator) -> None:
    initialised(cloud)
    deleted = operator.deletes()
    assert deleted.succeeded
    [copy] = [each for each in deleted.retained if each.kind == "copy of the certificate authorities"]
    secrets = operator.account.client("secretsmanager")
    assert secrets.describe_secret(SecretId=copy.id)["DeletedDate"]
    secrets.restore_secret(SecretId=copy.id)
    assert secrets.get_secret_value(SecretId=copy.id)["SecretString"] == BUNDLE
    assert f"restore-secret --secret-id {copy.id}" in copy.why
    [snapshot] = [each for each in deleted.retained if each.kind == "snapshot"]
    assert copy.id in snapshot.why
    assert any("restored for 30 days" in text for text in operator.questions[0].consequences)


def test_a_second_deletion_reads_from_the_account_that_they_can_be_brought_back(
    cloud: Cloud, operator: Operator
) -> None:
    initialised(cloud)
    first = kept(operator.deletes())
    name = first["copy of the certificate authorities"].id
    assert kept(operator.deletes()) == first
    assert first["snapshot"].why.endswith(f"{name} contains a copy of them")
    cloud.faults.deny("secretsmanager:ListSecrets")
    assert "is unknown without the permission secretsmanager:ListSecrets" in kept(operator.deletes())["snapshot"].why
    cloud.faults.clear()
    secrets = operator.account.client("secretsmanager")
    secrets.restore_secret(SecretId=name)
    assert kept(operator.deletes())["copy of the certificate authorities"].why == "restored, so that it can be read"
    secrets.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
    assert "no copy of them, so they are lost unless you have kept one" in kept(operator.deletes())["snapshot"].why


def test_a_file_is_for_its_owner_alone(cloud: Cloud, operator: Operator, tmp_path: Path) -> None:
    initialised(cloud)
    path = tmp_path / "authorities.json"
    deleted = operator.deletes(authorities=AuthorityCopy("file", path))
    assert deleted.succeeded
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == (BUNDLE, 0o600)
    assert str(path) in {each.id for each in deleted.retained}
    assert inventory(REGION)["secrets"] == set()


def test_what_cannot_be_kept_stops_the_deletion(cloud: Cloud, operator: Operator, tmp_path: Path) -> None:
    initialised(cloud)
    before = inventory(REGION)
    other = tmp_path / "other.json"
    other.write_text("something else")
    for path in (other, tmp_path / "missing" / "authorities.json"):
        with pytest.raises(CopyError, match="nothing was deleted"):
            operator.deletes(authorities=AuthorityCopy("file", path))
    assert other.read_text() == "something else"
    cloud.faults.deny("secretsmanager:GetSecretValue")
    with pytest.raises(UnreadableAuthoritiesError) as refused:
        operator.deletes()
    assert "--authorities destroy" in refused.value.hint
    assert inventory(REGION) == before
    assert operator.deletes(authorities=AuthorityCopy("destroy")).succeeded


def test_they_are_destroyed_only_if_told(cloud: Cloud, operator: Operator) -> None:
    initialised(cloud)
    deleted = operator.deletes(authorities=AuthorityCopy("destroy"))
    assert deleted.succeeded
    assert "copy of the certificate authorities" not in {each.kind for each in deleted.retained}
    assert any("no copy is kept" in text for text in operator.questions[0].consequences)
    secrets = operator.account.client("secretsmanager").list_secrets(IncludePlannedDeletion=True)["SecretList"]
    assert secrets == []


def test_nothing_is_said_of_authorities_that_no_master_has_made(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    assert operator.deletes().succeeded
    assert not any("certificate" in text for text in operator.questions[0].consequences)
    secrets = operator.account.client("secretsmanager").list_secrets(IncludePlannedDeletion=True)["SecretList"]
    assert secrets == []


def test_who_attaches_to_a_deletion_is_not_kept_out_for_the_authorities(cloud: Cloud, operator: Operator) -> None:
    initialised(cloud)
    assert operator.deletes(authorities=AuthorityCopy("destroy"), detach=True).in_progress
    cloud.faults.deny("secretsmanager:GetSecretValue")
    assert operator.deletes().succeeded
