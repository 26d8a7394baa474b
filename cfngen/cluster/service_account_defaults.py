"""Fills in what follows from `serviceAccountIssuer`: where AWS reads its documents, and who uses its tokens.

The data is not validated yet: a value of the wrong type is left as it is, and validation reports it.
"""

from __future__ import annotations

from cfngen.cluster.completed_data import CompletedData, Derivation
from cfngen.cluster.names import aws_partition
from cfngen.cluster.paths import Path

ISSUER: Path = ("serviceAccountIssuer",)


def fill(completed: CompletedData) -> None:
    """Fill in the issuer's discovery, the roles of add-ons and the webhook, after the region has been filled in."""
    issuer = completed.data.get("serviceAccountIssuer")
    if not isinstance(issuer, dict):
        return
    region = str(completed.data.get("region", ""))
    if aws_partition(region) != "aws":
        # "CloudFront endpoints and quotas", AWS General Reference: only the partition aws. In China it is a service of
        # its own that needs a registered domain (ICP).
        completed.fill((*ISSUER, "discovery"), "bucket", Derivation(reason="from region", source=("region",)))
    if issuer.get("signTokens", True) is True:
        derivation = Derivation(reason="from serviceAccountIssuer", source=ISSUER)
        # The user can publish the keys only once masters have made them, and masters do not boot without the cloud
        # controller manager. So that one has the masters' role until the documents are there.
        masters_publish = issuer.get("discovery") != "url" or bool(issuer.get("bucket"))
        completed.fill(("iam", "addonRoles"), value=masters_publish, derivation=derivation)
        completed.fill(("addons", "podIdentityWebhook", "enabled"), value=True, derivation=derivation)
