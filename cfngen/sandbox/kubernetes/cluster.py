"""A sandboxed Kubernetes cluster: its state, and its API, which answers while etcd has a quorum of masters."""

from __future__ import annotations

import datetime
import ipaddress
import json
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.kubernetes import certificates
from cfngen.sandbox.kubernetes.api import ClusterAccess, KubernetesApi
from cfngen.sandbox.kubernetes.backups import Backups
from cfngen.sandbox.kubernetes.controllers import Controllers
from cfngen.sandbox.kubernetes.service_account_tokens import TokenIssuer, token_issuer
from cfngen.sandbox.kubernetes.state import KubernetesState
from cfngen.sandbox.kubernetes.system_objects import create_cluster_objects
from cfngen.sandbox.untyped import JsonObject

TOKEN_LIFETIME_SECONDS = 24 * 3600  # as in the boot program
TOKEN_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


class KubernetesCluster:
    """One cluster. It is created when its first master boots, and stays when masters are replaced.

    Args:
        references: physical ids and addresses by name, which CloudFormation filled into the first master's user data.
        schedule: called with a number of seconds and a function: calls the function after that simulated time.

    Attributes:
        references: physical ids and addresses that CloudFormation filled into the user data of the newest master.
        controllers: the cluster's controllers, which make load balancers, routes and volumes in AWS.
        token_issuer: what the API server of the newest master signs tokens of service accounts with.
        members: ids of the master instances by the id of their data volume.
        expires: when the bootstrap token of the join information expires; empty before `publish`.
    """

    def __init__(
        self,
        configuration: JsonObject,
        references: Mapping[str, str],
        bundle: Mapping[str, str],
        now: Callable[[], datetime.datetime],
        schedule: Callable[[float, Callable[[], None]], None],
    ) -> None:
        networking = _cluster_configuration(configuration)["networking"]
        self.name = str(configuration["cluster"])
        self.region = str(configuration["region"])
        self.references = dict(references)
        self.bundle = dict(bundle)
        self.endpoint = str(configuration["endpoint"])
        self.members: dict[str, str] = {}
        self._versions: dict[str, str] = {}  # the masters' Kubernetes versions by the id of their data volume
        self.expires = ""
        self._addresses = _master_addresses(configuration)
        self._names = _certificate_names(configuration)
        self._dns_domain = networking["dnsDomain"]
        service_range = ipaddress.ip_network(networking["serviceSubnet"])
        # Kubernetes gives the API the first address of the range, and kubeadm gives the cluster's DNS the tenth one.
        self._service_address, dns_address = str(service_range[1]), str(service_range[10])
        pod_subnet = networking.get("podSubnet")
        # Without a podSubnet, the network plugin assigns addresses of the VPC, and nodes have no pod CIDR.
        self._pod_ranges = ipaddress.ip_network(pod_subnet).subnets(new_prefix=24) if pod_subnet else iter(())
        self._api: KubernetesApi | None = None
        self.token_issuer = self._new_token_issuer(configuration)
        self.state = KubernetesState(now, _kubernetes_version(configuration))
        route_table_id = references.get("routeTableId", "")
        self.controllers = Controllers(self.region, self.name, route_table_id, self.state, schedule)
        self.backups = Backups(self.region, self.name, self.state)
        self._backup_interval_minutes = 0  # 0: no snapshots are taken
        create_cluster_objects(self.state, service_address=self._service_address, dns_address=dns_address)

    @property
    def api_endpoint(self) -> str:
        """The API's URL in the stack's outputs."""
        host = self.references.get("publicAddress") or self.references["privateAddress"]
        port = self.endpoint.rpartition(":")[2]
        return f"https://{host}" if port == "443" else f"https://{host}:{port}"

    def start(
        self, instance_id: str, configuration: JsonObject, references: Mapping[str, str], bundle: Mapping[str, str]
    ) -> None:
        """Start the control plane of a master; it replaces the master that had the same data volume before.

        Args:
            references: the values that CloudFormation filled into its user data.
            bundle: its certificate authorities; if they or the API's names changed, a new serving certificate is
                issued.
        """
        previous_address = self.references.get("publicAddress")
        former = self.members.get(references["volumeId"], instance_id)
        if former != instance_id:
            self.controllers.remove_node(former)  # as the boot program does, long before Kubernetes would
        self.members[references["volumeId"]] = instance_id
        self.references = dict(references)
        self.state.version = self._versions[references["volumeId"]] = _kubernetes_version(configuration)
        self._backup_schedule = configuration.get("backups", {})
        self._addresses = _master_addresses(configuration)
        previous_names = self._names
        self._names = list(dict.fromkeys([*previous_names, *_certificate_names(configuration)]))
        has_new_name = references.get("publicAddress") != previous_address or self._names != previous_names
        if bundle["ca.crt"] != self.bundle["ca.crt"] or has_new_name:
            self.close()
        self.bundle = dict(bundle)
        self.token_issuer = self._new_token_issuer(configuration)

    def _new_token_issuer(self, configuration: JsonObject) -> TokenIssuer:
        return token_issuer(_cluster_configuration(configuration), self.bundle, self.api_endpoint)

    def address(self, lock: AbstractContextManager[object], has_quorum: Callable[[], bool], speed: float = 1.0) -> str:
        """Return the API's URL on this machine; start the server if it does not listen yet; see `ClusterAccess`."""
        if self._api is None:
            serving = certificates.issue_server_certificate(self.bundle, self.server_names(), self.state.now())
            access = ClusterAccess(
                state=self.state,
                lock=lock,
                has_quorum=has_quorum,
                on_created=self.controllers.on_created,
                delete_object=self.controllers.delete_object,
                token_issuer=lambda: self.token_issuer,
                speed=speed,
            )
            self._api = KubernetesApi(access, self.bundle["ca.crt"], serving)
        return self._api.address

    def server_names(self) -> set[str]:
        """Return the names of the serving certificate: those that kubeadm adds, the configured ones, and loopback."""
        names_of_kubeadm = {
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            f"kubernetes.default.svc.{self._dns_domain}",
            self._service_address,
            self.references["privateAddress"],
            self.endpoint.rpartition(":")[0],
        }
        # A name with a placeholder is known only on the instance.
        configured_names = {name for name in self._names if "${" not in name}
        return names_of_kubeadm | configured_names | {"127.0.0.1", "localhost"}

    def next_pod_range(self) -> str:
        """Return the pod CIDR for a new node; empty if nodes have none."""
        return str(next(self._pod_ranges, ""))

    @property
    def oldest_version(self) -> str:
        """The lowest Kubernetes version of the masters, e.g. `1.36.3`; kubelets must not be newer."""
        return min(self._versions.values(), key=_version_numbers)

    def publish(self) -> str:
        """Write the join information of nodes into the join secret; return the boot program's log line about it."""
        self.expires = self.state.time(seconds_from_now=TOKEN_LIFETIME_SECONDS)
        information = {
            "endpoint": self.endpoint,
            "addresses": self._addresses,
            "kubernetesVersion": f"v{self.oldest_version}",
            "caHash": certificates.public_key_hash(self.bundle["ca.crt"]),
            "token": f"{_random_letters(6)}.{_random_letters(16)}",
            "expires": self.expires,
        }
        client("secretsmanager", self.region).put_secret_value(
            SecretId=self.references["joinSecretArn"], SecretString=json.dumps(information)
        )
        return f"nodes may join {self.endpoint} with a token until {self.expires}"

    def back_up(self) -> None:
        """Take a snapshot if one is due or requested, once the cluster has published its join information."""
        if self._backup_schedule and self.expires:
            leader = next(iter(self.members.values()))  # the first master counts as the one with etcd's leader
            self.backups.take_due_snapshot(self.references["bucket"], self._backup_schedule, leader)

    def close(self) -> None:
        """Stop the API's server, if it listens."""
        if self._api:
            self._api.close()
            self._api = None


def _cluster_configuration(configuration: JsonObject) -> JsonObject:
    cluster_configuration: JsonObject = next(
        document for document in configuration["kubeadm"] if document["kind"] == "ClusterConfiguration"
    )
    return cluster_configuration


def _master_addresses(configuration: JsonObject) -> list[str]:
    """Return the fixed addresses of the masters, in the order of their slots."""
    return [str(address) for _, address in sorted(configuration["masters"].items())]


def _certificate_names(configuration: JsonObject) -> list[str]:
    return [str(name) for name in _cluster_configuration(configuration)["apiServer"]["certSANs"]]


def _kubernetes_version(configuration: JsonObject) -> str:
    """Return the configured Kubernetes version, e.g. `1.36.3`."""
    return str(_cluster_configuration(configuration)["kubernetesVersion"]).lstrip("v")


def _random_letters(count: int) -> str:
    return "".join(secrets.choice(TOKEN_CHARACTERS) for _ in range(count))


def _version_numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
