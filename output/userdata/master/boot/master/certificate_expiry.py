"""Tells when a master's leaf certificates expire, and when they are due for renewal."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ..machine import HOME, Machine
from .certificate_authorities import KUBEADM_CONFIG

if TYPE_CHECKING:
    from ..contract import MasterBoot

# Validity of a certificate unless the cluster file sets kubeadm's certificateValidityPeriod.
DEFAULT_VALIDITY_HOURS = 365 * 24
# Certificates are renewed when this share of their validity is left, in each further slot a little later.
RENEWAL_SHARE = 0.3
SHARE_BETWEEN_SLOTS = 0.02
# File with the expiry of the certificates that the running control plane has loaded.
LOADED_EXPIRY_FILE = HOME + "/certificates"


def first_expiry(machine: Machine) -> str:
    """Return when the first of the certificates expires (RFC 3339, UTC; the texts sort chronologically).

    Raises:
        BootError: kubeadm cannot read the certificates.
    """
    _, text = machine.run("kubeadm", "certs", "check-expiration", "-o", "json", "--config", KUBEADM_CONFIG)
    certificates = json.loads(text)["certificates"]
    return min(str(certificate["expirationDate"]) for certificate in certificates if not certificate.get("missing"))


def is_renewal_due(machine: Machine, boot: MasterBoot, expires: str) -> bool:
    """Return whether less than 30 % of the certificates' validity is left in slot a, 28 % in slot b, and so on.

    The shares differ so that masters created together do not restart their etcd in the same night.
    """
    period = re.match(r"(\d+)h", str(boot.config["kubeadm"][1].get("certificateValidityPeriod", "")))
    share = RENEWAL_SHARE - SHARE_BETWEEN_SLOTS * (ord(boot.facts["slot"]) - ord("a"))
    return expires < machine.time(share * 3600 * (int(period[1]) if period else DEFAULT_VALIDITY_HOURS))
