"""The logical ids of roles that pods and pipelines assume by their tokens, and of what holds their images."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from cfngen.cluster.naming.id_form import IdForm, pascal

# A logical id has 255 characters at most ("Resources", AWS CloudFormation User Guide).
_MAX_WORDS_LENGTH = 200


@dataclass(frozen=True)
class ServiceAccountRoleId(IdForm):
    """The role of a service account, e.g. `ServiceAccountRoleKubeSystemClusterAutoscaler1d7fb0a3`.

    Attributes:
        words: namespace and name in PascalCase, cut if they are long.
        digest: eight hexadecimal digits, different for each service account.
    """

    words: str
    digest: str

    _TEXT: ClassVar = "ServiceAccountRole{words}{digest}"
    _PATTERN: ClassVar = re.compile(r"ServiceAccountRole(?P<words>[A-Z0-9][A-Za-z0-9]*)(?P<digest>[0-9a-f]{8})")

    @classmethod
    def of(cls, namespace: str, name: str, digest: str) -> ServiceAccountRoleId:
        """Return the id of the role of a service account."""
        return cls(pascal(f"{namespace}-{name}")[:_MAX_WORDS_LENGTH], digest)


@dataclass(frozen=True)
class RegistryId(IdForm):
    """A repository for images, or the OIDC provider of those who push them, e.g. `RepositoryShopWeb1d7fb0a3`.

    Attributes:
        words: its name in PascalCase, cut if it is long; a provider's is the issuer without `https://`.
        digest: eight hexadecimal digits, different for each name.
    """

    kind: Literal["Repository", "OidcProvider"]
    words: str
    digest: str

    _TEXT: ClassVar = "{kind}{words}{digest}"
    _PATTERN: ClassVar = re.compile(
        r"(?P<kind>Repository|OidcProvider)(?P<words>[A-Z0-9][A-Za-z0-9]*)(?P<digest>[0-9a-f]{8})"
    )

    @classmethod
    def of(cls, kind: Literal["Repository", "OidcProvider"], name: str) -> RegistryId:
        """Return the id of a repository or provider."""
        return cls(kind, pascal(name)[:_MAX_WORDS_LENGTH], hashlib.sha256(name.encode()).hexdigest()[:8])


@dataclass(frozen=True)
class PushRoleId(IdForm):
    """The role of those who push images, or the output with its ARN, e.g. `PushWebRole`, `PushWebRoleArn`."""

    name: str
    part: Literal["Role", "RoleArn"] = "Role"

    _PATTERN: ClassVar = re.compile(r"Push(?P<name>[A-Z0-9][A-Za-z0-9]*?)(?P<part>Role|RoleArn)")

    def __str__(self) -> str:
        return f"Push{pascal(self.name)}{self.part}"
