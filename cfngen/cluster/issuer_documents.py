"""The two documents of the issuer of service-account tokens: where AWS reads them, and whether masters write them."""

from __future__ import annotations

from urllib.parse import urlsplit

from cfngen.cluster.model import Cluster, ServiceAccountIssuer
from cfngen.cluster.service_accounts import DISCOVERY_KEY, KEYS_KEY


def masters_publish_documents(cluster: Cluster) -> bool:
    """Return whether masters write the documents into a bucket: the cluster's own, or a web server's."""
    issuer = cluster.service_account_issuer
    return issuer is not None and (issuer.discovery != "url" or bool(issuer.bucket))


def document_keys(issuer: ServiceAccountIssuer) -> tuple[str, str]:
    """Return the keys in the bucket of the discovery document and of the document with the public keys.

    In the bucket of a web server, they are under the path of the URL.
    """
    path = urlsplit(issuer.url).path.strip("/") if issuer.url else ""
    prefix = f"{path}/" if path else ""
    return f"{prefix}{DISCOVERY_KEY}", f"{prefix}{KEYS_KEY}"
