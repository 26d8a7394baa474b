"""A cluster's controllers: the cloud controller manager with its load balancers and routes, and those of volumes.

Names and tags are those of kubernetes/cloud-provider-aws (`aws_loadbalancer.go`, `tags.go`). CloudFormation knows
nothing of the load balancers, and a stack cannot be deleted while their network interfaces are in its subnets.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.kubernetes.ebs_driver import tag_list
from cfngen.sandbox.kubernetes.persistent_volumes import PersistentVolumes
from cfngen.sandbox.kubernetes.state import KubernetesState, Object
from cfngen.sandbox.kubernetes.system_objects import delete_node, is_network_plugin, is_without_network_plugin
from cfngen.sandbox.untyped import AwsClient, JsonDict

BALANCER_TYPE_ANNOTATION = "service.beta.kubernetes.io/aws-load-balancer-type"
CLEANUP_FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
NETWORK_PLUGIN_SECONDS = 25.0  # until a network plug-in that a user applies runs on all nodes: an estimate
DELETION_SECONDS = 15.0  # simulated time that the deletion of a load balancer takes


@dataclass
class Controllers:
    """Does in AWS what the controllers of one cluster do.

    Attributes:
        cluster: name of the cluster, for the tags of the resources.
        route_table_id: the route table with the routes to the pods; also used to find the cluster's VPC and subnets.
            Empty if the network plugin needs no routes.
        volumes: the controllers of PersistentVolumes and of pods.
        schedule: called with a number of seconds and a function: calls the function after that simulated time.
    """

    region: str
    cluster: str
    route_table_id: str
    state: KubernetesState
    schedule: Callable[[float, Callable[[], None]], None]

    def __post_init__(self) -> None:
        self.volumes = PersistentVolumes(self.state, self.schedule)

    def on_created(self, plural: str, manifest: Object) -> None:
        """Create the load balancer of a new Service, start a new network plug-in, see to pods and claims."""
        if plural == "services" and manifest["spec"].get("type") == "LoadBalancer":
            self._create_balancer(manifest)
        if plural == "daemonsets" and is_network_plugin(manifest):
            self.schedule(NETWORK_PLUGIN_SECONDS, self._connect_nodes)
        self.volumes.reconcile()

    def delete_object(self, plural: str, manifest: Object) -> None:
        """Delete an object.

        A Service with a load balancer has a finalizer: it is deleted some seconds later, after the load balancer.
        Claims and PersistentVolumes have finalizers, too. Until they go, such objects have a `deletionTimestamp`.
        """
        metadata = manifest["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace", "")
        if plural in ("persistentvolumeclaims", "persistentvolumes"):
            self.volumes.delete(manifest)
        elif plural != "services" or CLEANUP_FINALIZER not in metadata.get("finalizers", []):
            self.state.remove(plural, name, namespace)
            self.volumes.reconcile()
        elif "deletionTimestamp" not in metadata:
            metadata["deletionTimestamp"] = self.state.time()
            self.schedule(DELETION_SECONDS, functools.partial(self._finish_deletion, manifest))

    def make_ready(self, node: str, *, awaits_plugin: bool) -> bool:
        """Make a node Ready, unless it has no network plug-in; return whether it is Ready.

        Args:
            awaits_plugin: whether the masters install a network plug-in; otherwise a user does.
        """
        is_ready = awaits_plugin or any(map(is_network_plugin, self.state.list("daemonsets")))
        if is_ready:
            self.state.set_ready(node, True)
        self.volumes.reconcile()
        return is_ready

    def _connect_nodes(self) -> None:
        """Make the nodes Ready that only had no network plug-in."""
        for node in filter(is_without_network_plugin, self.state.list("nodes")):
            self.state.set_ready(node["metadata"]["name"], True)
        self.volumes.reconcile()

    def add_pod_route(self, node: str, pod_cidr: str) -> None:
        """Add the route to a node's pods to the cluster's route table."""
        if self.route_table_id:
            self._ec2.create_route(RouteTableId=self.route_table_id, DestinationCidrBlock=pod_cidr, InstanceId=node)

    def remove_node(self, node: str) -> None:
        """Delete a node whose instance is gone, its pods, and the route to the pods."""
        node_object = self.state.get("nodes", node)
        delete_node(self.state, node)
        self.volumes.reconcile()
        # If the stack has been deleted, the route table and its routes no longer exist.
        with contextlib.suppress(ClientError):
            if node_object and self.route_table_id:
                pod_cidr = node_object["spec"]["podCIDR"]
                self._ec2.delete_route(RouteTableId=self.route_table_id, DestinationCidrBlock=pod_cidr)

    @property
    def _ec2(self) -> AwsClient:
        return client("ec2", self.region)

    def _create_balancer(self, service: Object) -> None:
        """Create a Service's load balancer with its target groups or its security group, and set its host name."""
        service["metadata"]["finalizers"] = [CLEANUP_FINALIZER]
        vpc, subnets = self._vpc_and_subnets()
        if _is_network_balancer(service):
            host_name, group_ids = self._create_network_balancer(service, vpc, subnets), []
        else:
            host_name, group_id = self._create_classic_balancer(service, vpc, subnets)
            group_ids = [group_id]
        # moto's load balancers have no network interfaces. On AWS they have some, which prevent the deletion of the
        # subnets and security groups.
        for subnet in subnets:
            self._ec2.create_network_interface(
                SubnetId=subnet,
                Description=_interface_description(service),
                **({"Groups": group_ids} if group_ids else {}),
            )
        service["status"] = {"loadBalancer": {"ingress": [{"hostname": host_name}]}}

    def _balancer_tags(self, service: Object) -> dict[str, str]:
        return {
            "KubernetesCluster": self.cluster,
            f"kubernetes.io/cluster/{self.cluster}": "owned",
            "kubernetes.io/service-name": _full_name(service),
        }

    def _create_network_balancer(self, service: Object, vpc: str, subnets: list[str]) -> str:
        """Create a network load balancer, which has no security groups; return its host name."""
        elbv2, name = client("elbv2", self.region), balancer_name(service)
        tags = tag_list(self._balancer_tags(service))
        response = elbv2.create_load_balancer(Name=name, Subnets=subnets, Type="network", Tags=tags)
        [balancer] = response["LoadBalancers"]
        for port in _ports(service):
            target = elbv2.create_target_group(
                Name=f"k8s-{name[:20]}-{port}", Protocol="TCP", Port=port, VpcId=vpc, Tags=tags
            )["TargetGroups"][0]["TargetGroupArn"]
            forward = [{"Type": "forward", "TargetGroupArn": target}]
            elbv2.create_listener(
                LoadBalancerArn=balancer["LoadBalancerArn"], Protocol="TCP", Port=port, DefaultActions=forward
            )
        return str(balancer["DNSName"])

    def _create_classic_balancer(self, service: Object, vpc: str, subnets: list[str]) -> tuple[str, str]:
        """Create a classic load balancer; return its host name, and the id of its security group."""
        name, tags = balancer_name(service), tag_list(self._balancer_tags(service))
        group_id = self._ec2.create_security_group(
            GroupName=f"k8s-elb-{name}",
            Description=f"Security group for Kubernetes ELB {name} ({_full_name(service)})",
            VpcId=vpc,
            TagSpecifications=[{"ResourceType": "security-group", "Tags": tags}],
        )["GroupId"]
        for cluster_group in self._node_security_groups(vpc):
            self._ec2.authorize_security_group_ingress(GroupId=cluster_group, IpPermissions=_allow_from(group_id))
        listeners = [
            {"Protocol": "TCP", "LoadBalancerPort": port, "InstanceProtocol": "TCP", "InstancePort": 30080}
            for port in _ports(service)
        ]
        host_name = client("elb", self.region).create_load_balancer(
            LoadBalancerName=name, Listeners=listeners, Subnets=subnets, SecurityGroups=[group_id], Tags=tags
        )["DNSName"]
        return host_name, group_id

    def _delete_balancer(self, service: Object) -> None:
        name = balancer_name(service)
        vpc, _ = self._vpc_and_subnets()
        if _is_network_balancer(service):
            elbv2 = client("elbv2", self.region)
            arn = elbv2.describe_load_balancers(Names=[name])["LoadBalancers"][0]["LoadBalancerArn"]
            targets = elbv2.describe_target_groups(LoadBalancerArn=arn)["TargetGroups"]
            elbv2.delete_load_balancer(LoadBalancerArn=arn)
            for target in targets:
                elbv2.delete_target_group(TargetGroupArn=target["TargetGroupArn"])
        else:
            client("elb", self.region).delete_load_balancer(LoadBalancerName=name)
        interfaces = self._ec2.describe_network_interfaces(
            Filters=[{"Name": "description", "Values": [_interface_description(service)]}]
        )["NetworkInterfaces"]
        for interface in interfaces:
            self._ec2.delete_network_interface(NetworkInterfaceId=interface["NetworkInterfaceId"])
        filters = [{"Name": "group-name", "Values": [f"k8s-elb-{name}"]}]
        for security_group in self._ec2.describe_security_groups(Filters=filters)["SecurityGroups"]:
            for cluster_group in self._node_security_groups(vpc):
                self._ec2.revoke_security_group_ingress(
                    GroupId=cluster_group, IpPermissions=_allow_from(security_group["GroupId"])
                )
            self._ec2.delete_security_group(GroupId=security_group["GroupId"])

    def _finish_deletion(self, service: Object) -> None:
        """Delete the load balancer of a Service, then the Service; it stays if the load balancer does."""
        try:
            self._delete_balancer(service)
        except ClientError as error:
            self.state.record_event("services", service, "SyncLoadBalancerFailed", str(error), warning=True)
        else:
            self.state.remove("services", service["metadata"]["name"], service["metadata"]["namespace"])

    def _vpc_and_subnets(self) -> tuple[str, list[str]]:
        """Return the ids of the cluster's VPC and subnets: those of its route table, or else of its nodes."""
        if not self.route_table_id:
            nodes = [node["metadata"]["name"] for node in self.state.list("nodes")]
            reservations = self._ec2.describe_instances(InstanceIds=nodes)["Reservations"]
            instances = [instance for reservation in reservations for instance in reservation["Instances"]]
            return str(instances[0]["VpcId"]), sorted({instance["SubnetId"] for instance in instances})
        [table] = self._ec2.describe_route_tables(RouteTableIds=[self.route_table_id])["RouteTables"]
        return str(table["VpcId"]), [
            association["SubnetId"] for association in table["Associations"] if "SubnetId" in association
        ]

    def _node_security_groups(self, vpc: str) -> list[str]:
        """Return the ids of the nodes' security groups; the controller adds rules for load balancers to them."""
        filters = [
            {"Name": "vpc-id", "Values": [vpc]},
            {"Name": "tag-key", "Values": [f"kubernetes.io/cluster/{self.cluster}"]},
        ]
        security_groups = self._ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
        return [group["GroupId"] for group in security_groups if not group["GroupName"].startswith("k8s-elb-")]


def balancer_name(service: Object) -> str:
    """Return the name of a Service's load balancer: `a` and the Service's uid, cut to AWS's limit of 32 characters."""
    return f"a{service['metadata']['uid'].replace('-', '')}"[:32]


def _interface_description(service: Object) -> str:
    return f"ELB {'net/' if _is_network_balancer(service) else ''}{balancer_name(service)}"


def _is_network_balancer(service: Object) -> bool:
    """Return whether a Service has the annotation for a network load balancer; without it, it gets a classic one."""
    annotations = service["metadata"].get("annotations") or {}
    return str(annotations.get(BALANCER_TYPE_ANNOTATION, "")).startswith("nlb")


def _full_name(service: Object) -> str:
    return f"{service['metadata']['namespace']}/{service['metadata']['name']}"


def _ports(service: Object) -> list[int]:
    return [int(port["port"]) for port in service["spec"]["ports"]]


def _allow_from(group_id: str) -> list[JsonDict]:
    return [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group_id}]}]
