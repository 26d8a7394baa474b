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
# Slot a renews its certificates when this share of their validity is left; each further slot does so a little later, at
# a share that is smaller by SHARE_BETWEEN_SLOTS.
RENEWAL_SHARE = 0.3
SHARE_BETWEEN_SLOTS = 0.02
# File with the time at which the certificates that the running control plane has loaded expire.
LOADED_EXPIRY_FILE = HOME + "/certificates"


def first_expiry(machine: Machine) -> str:
    """Return when the first of this master's leaf certificates expires, as RFC 3339 text, which sorts by time."""
    _, text = machine.run("kubeadm", "certs", "check-expiration", "-o", "json", "--config", KUBEADM_CONFIG)
    certificates = json.loads(text)["certificates"]
    return min(str(certificate["expirationDate"]) for certificate in certificates if not certificate.get("missing"))


def is_renewal_due(machine: Machine, boot: MasterBoot, expires: str) -> bool:
    """Return whether the certificates are due for renewal.

    In slot a they are due when less than 30 % of their validity is left, in slot b 28 %, and so on. The shares differ
    so that masters created together do not restart their etcd in the same night.
    """
    _, cluster_configuration = boot.config["kubeadm"]
    configured_hours = re.match(r"(\d+)h", str(cluster_configuration.get("certificateValidityPeriod", "")))
    validity_hours = int(configured_hours[1]) if configured_hours else DEFAULT_VALIDITY_HOURS
    slot_number = ord(boot.facts["slot"]) - ord("a")
    share = RENEWAL_SHARE - SHARE_BETWEEN_SLOTS * slot_number
    renewal_seconds = share * 3600 * validity_hours
    return expires < machine.time(renewal_seconds)
