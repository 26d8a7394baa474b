"""When the leaf certificates of a master end, and when it is time for new ones."""

from __future__ import annotations

import json
import re
from typing import Any

from .certificate_authorities import KUBEADM
from .machine import HOME, Machine

# Hours that a certificate lives unless the cluster file says otherwise: kubeadm's certificateValidityPeriod.
DEFAULT_VALIDITY_HOURS = 365 * 24
RENEWAL_SHARE = 0.3
SHARE_BETWEEN_SLOTS = 0.02
# Until when the certificates are good that the running control plane has read.
READ = HOME + "/certificates"


def first(machine: Machine) -> str:
    """Return when the first certificate ends (RFC 3339, UTC; such texts compare like times).

    Raises:
        BootError: kubeadm cannot read them.
    """
    _, text = machine.run("kubeadm", "certs", "check-expiration", "-o", "json", "--config", KUBEADM)
    certificates = json.loads(text)["certificates"]
    return min(str(certificate["expirationDate"]) for certificate in certificates if not certificate.get("missing"))


def due(machine: Machine, config: dict[str, Any], expires: str) -> bool:
    """Return whether less than 30 % of a certificate's life is left; of each further slot's, 2 % less than that.

    Masters that were made together would else restart their etcd in the same night.
    """
    period = re.match(r"(\d+)h", str(config["kubeadm"][1].get("certificateValidityPeriod", "")))
    share = RENEWAL_SHARE - SHARE_BETWEEN_SLOTS * (ord(config["facts"]["slot"]) - ord("a"))
    return expires < machine.time(share * 3600 * (int(period[1]) if period else DEFAULT_VALIDITY_HOURS))
