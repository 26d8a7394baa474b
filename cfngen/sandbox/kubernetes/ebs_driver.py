"""The EBS CSI driver of a cluster: EBS volumes for PersistentVolumes, with the rights of the role that its pods have.

Tags, parameters of StorageClasses and errors are those of kubernetes-sigs/aws-ebs-csi-driver (`constants.go` and
`controller.go` of `pkg/driver`, `templates/storageclass.yaml` of its chart). The values of its chart are those in the
masters' configuration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from botocore.exceptions import ClientError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.kubernetes.state import Object
from cfngen.sandbox.services.policy_documents import partition
from cfngen.sandbox.services.policy_simulation import role_decision
from cfngen.sandbox.untyped import JsonDict, JsonObject, MotoBackend

RELEASE = "aws-ebs-csi-driver"  # name of the Helm release
PROVISIONER = "ebs.csi.aws.com"
OWN_TAG = {"ebs.csi.aws.com/cluster": "true"}
ROLE_VARIABLE = "AWS_ROLE_ARN"
DEVICES = tuple(f"/dev/xvd{first}{second}" for first in "abcd" for second in ascii_lowercase)
# Parameters of a StorageClass, in lower case as the driver compares them, with the parameter of CreateVolume.
VOLUME_PARAMETERS = {
    "type": "VolumeType",
    "iops": "Iops",
    "throughput": "Throughput",
    "encrypted": "Encrypted",
    "kmskeyid": "KmsKeyId",
}
FILE_SYSTEM_PARAMETER = "csi.storage.k8s.io/fstype"
SUPPORTED_ACCESS_MODES = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})


class DriverError(Exception):
    """A request to the driver failed; the message is what it answers."""


@dataclass(frozen=True)
class EbsDriver:
    """The driver that masters install.

    Attributes:
        values: the values of its chart.
        role: ARN of the role of its pods; empty if they have none.
    """

    region: str
    values: JsonObject
    role: str

    def storage_classes(self) -> Iterator[Object]:
        """Yield the StorageClasses of the chart."""
        for settings in self.values.get("storageClasses") or ():
            metadata = {key: settings[key] for key in ("name", "annotations", "labels") if settings.get(key)}
            rest = {key: value for key, value in settings.items() if key not in ("name", "annotations", "labels")}
            yield {
                "metadata": metadata,
                "provisioner": PROVISIONER,
                "reclaimPolicy": "Delete",
                "volumeBindingMode": "WaitForFirstConsumer",
                **rest,
            }

    def create_volume(self, volume: str, claim: Object, storage_class: Object, *, zone: str, gib: int) -> str:
        """Create the EBS volume of a PersistentVolume; return its id.

        Args:
            volume: name of the PersistentVolume.

        Raises:
            DriverError: the volume is not what the driver can create, or EC2 refuses it.
        """
        unsupported = sorted(set(claim["spec"]["accessModes"]) - SUPPORTED_ACCESS_MODES)
        if unsupported and claim["spec"]["volumeMode"] == "Filesystem":
            modes = ", ".join(unsupported)
            raise DriverError(f"Volume capabilities {modes} not supported. Only AccessModes[ReadWriteOnce] supported.")
        tags = self._tags(volume, claim)
        request = {"AvailabilityZone": zone, "Size": gib, **_volume_settings(storage_class)}
        context = {
            "aws:tagkeys": list(tags),
            **{f"aws:requesttag/{key.lower()}": [value] for key, value in tags.items()},
        }
        problem = f'Could not create volume "{volume}": could not create volume in EC2: '
        with_tags = {"TagSpecifications": [{"ResourceType": "volume", "Tags": tag_list(tags)}]}
        for operation in ("CreateVolume", "CreateTags"):
            self._require(problem, operation, "volume/*", {**context, "ec2:createaction": ["CreateVolume"]})
        return str(self._call(problem, "create_volume", {**request, **with_tags})["VolumeId"])

    def attach_volume(self, volume_id: str, instance_id: str) -> None:
        """Attach a volume to an instance.

        Raises:
            DriverError: EC2 refuses it.
        """
        problem = f'Could not attach volume "{volume_id}" to node "{instance_id}": '
        self._require_for_tagged(problem, "AttachVolume", volume=volume_id, instance=instance_id)
        used_devices = self._backend.get_instance(instance_id).block_device_mapping
        device = next(device for device in DEVICES if device not in used_devices)
        request = {"VolumeId": volume_id, "InstanceId": instance_id, "Device": device}
        self._call(problem, "attach_volume", request)

    def detach_volume(self, volume_id: str) -> None:
        """Detach a volume from its instance.

        Raises:
            DriverError: EC2 refuses it.
        """
        instance_id = self.attached_to(volume_id)
        problem = f'Could not detach volume "{volume_id}" from node "{instance_id}": '
        self._require_for_tagged(problem, "DetachVolume", volume=volume_id, instance=instance_id)
        self._call(problem, "detach_volume", {"VolumeId": volume_id, "InstanceId": instance_id})

    def delete_volume(self, volume_id: str) -> None:
        """Delete a volume; one that does not exist any more counts as deleted.

        Raises:
            DriverError: EC2 refuses it.
        """
        if volume_id not in self._backend.volumes:
            return
        problem = f'Could not delete volume ID "{volume_id}": '
        self._require_for_tagged(problem, "DeleteVolume", volume=volume_id)
        self._call(problem, "delete_volume", {"VolumeId": volume_id})

    def attached_to(self, volume_id: str) -> str:
        """Return the id of the instance that a volume is attached to; empty if there is none."""
        volume = self._backend.volumes.get(volume_id)
        return str(volume.attachment.instance.id) if volume and volume.attachment else ""

    def _tags(self, volume: str, claim: Object) -> dict[str, str]:
        settings, metadata = self.values.get("controller") or {}, claim["metadata"]
        tags = {"CSIVolumeName": volume, **OWN_TAG}
        if settings.get("extraCreateMetadata", True):
            tags |= {
                "kubernetes.io/created-for/pv/name": volume,
                "kubernetes.io/created-for/pvc/name": metadata["name"],
                "kubernetes.io/created-for/pvc/namespace": metadata["namespace"],
            }
        if cluster := settings.get("k8sTagClusterId"):
            tags |= {
                "KubernetesCluster": cluster,
                "Name": f"{cluster}-dynamic-{volume}",
                f"kubernetes.io/cluster/{cluster}": "owned",
            }
        return {**tags, **(settings.get("extraVolumeTags") or {})}

    def _require_for_tagged(self, problem: str, operation: str, **identifiers: str) -> None:
        """Refuse a call that the role's policies do not allow for resources with these ids, by kind, and their tags."""
        for kind, identifier in identifiers.items():
            tags = self._backend.describe_tags({"resource-id": [identifier]})
            context = {f"aws:resourcetag/{tag['key'].lower()}": [tag["value"]] for tag in tags}
            self._require(problem, operation, f"{kind}/{identifier}", context)

    def _require(self, problem: str, operation: str, resource: str, context: Mapping[str, list[str]]) -> None:
        """Refuse a call that the role's policies do not allow.

        Args:
            resource: kind and id of the resource, as at the end of its ARN.

        Raises:
            DriverError: they do not allow it.
        """
        arn = f"arn:{partition(self.region)}:ec2:{self.region}:{DEFAULT_ACCOUNT_ID}:{resource}"
        decision = role_decision(self.region, self.role, f"ec2:{operation}", arn, context)
        if not decision:
            raise DriverError(f"{problem}operation error EC2: {operation}, get identity: no EC2 IMDS role found")
        if decision != "allowed":
            reason = (
                "with an explicit deny" if decision == "explicitDeny" else "because no identity-based policy allows"
            )
            raise DriverError(
                f"{problem}operation error EC2: {operation}, https response error StatusCode: 403, api error "
                f"UnauthorizedOperation: You are not authorized to perform this operation. User: {self.role} is not "
                f"authorized to perform: ec2:{operation} on resource: {arn} {reason} the ec2:{operation} action"
            )

    def _call(self, problem: str, method: str, arguments: JsonObject) -> JsonDict:
        try:
            answer: JsonDict = getattr(client("ec2", self.region), method)(**arguments)
        except ClientError as error:
            raise DriverError(f"{problem}{error}") from error
        return answer

    @property
    def _backend(self) -> MotoBackend:
        return ec2_backends[DEFAULT_ACCOUNT_ID][self.region]


def installed_driver(region: str, releases: Sequence[JsonObject], master_role: str) -> EbsDriver | None:
    """Return the driver that masters install with a list of Helm releases; None if it is not in the list.

    Args:
        releases: as in the masters' configuration.
        master_role: ARN of the masters' role, which its pods have unless the release names another; may be empty.
    """
    for release in releases:
        if release["name"] == RELEASE:
            variables = (
                variable
                for patch in release["patches"]
                for container in _containers(patch)
                for variable in container.get("env") or ()
            )
            own_roles = [variable["value"] for variable in variables if variable["name"] == ROLE_VARIABLE]
            return EbsDriver(region, json.loads(release["values"]), own_roles[0] if own_roles else master_role)
    return None


def _containers(patch: JsonObject) -> Sequence[JsonObject]:
    containers: Sequence[JsonObject] = patch.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or ()
    return containers


def _volume_settings(storage_class: Object) -> JsonDict:
    """Return the parameters of CreateVolume that the parameters of a StorageClass give.

    Raises:
        DriverError: the sandbox does not model one of them.
    """
    settings: JsonDict = {"VolumeType": "gp3"}
    for key, value in (storage_class.get("parameters") or {}).items():
        name = VOLUME_PARAMETERS.get(key.lower())
        if name is None and key.lower() != FILE_SYSTEM_PARAMETER:
            raise DriverError(f"the sandbox does not model the parameter {key} of a StorageClass")
        if name == "Encrypted":
            settings[name] = str(value).lower() == "true"
        elif name:
            settings[name] = int(value) if name in ("Iops", "Throughput") else str(value)
    return settings


def tag_list(tags: Mapping[str, str]) -> list[JsonDict]:
    """Return tags in the form of AWS's APIs."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]
