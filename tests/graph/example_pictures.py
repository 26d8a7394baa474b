"""Pictures like those of real clusters, for tests of how they are drawn."""

from __future__ import annotations

import json
from collections.abc import Callable

from cfngen.graph.picture import Arrow, Box, BoxKind, Change, Picture


def default_cluster() -> Picture:
    """One zone, one master, one group of nodes."""
    boxes = [
        Box("source:internet", "source", "Internet", ("0.0.0.0/0",)),
        Box("source:admin", "source", "Administrators", ("203.0.113.0/24",)),
        Box("Vpc", "vpc", "VPC", ("172.20.0.0/16",), None, ("Vpc", "VpcDhcpOptions")),
        Box("InternetGateway", "gateway", "Internet gateway", (), "Vpc", ("InternetGateway", "GatewayAttachment")),
        Box("zone:us-west-2a", "zone", "us-west-2a", (), "Vpc"),
        Box("SubnetA", "subnet", "Public subnet", ("172.20.0.0/20",), "zone:us-west-2a", ("SubnetA",)),
        Box("MasterA", "instances", "master a", ("m3.medium", "Ubuntu 22.04", "172.20.0.9"), "SubnetA",
            ("MasterA", "MasterALaunchTemplate")),
        Box("MasterAVolume", "volume", "etcd", ("20 GiB gp3, encrypted",), "MasterA", ("MasterAVolume",)),
        Box("Nodes", "instances", "nodes", ("4 x t3.medium", "at least 2, at most 8"), "SubnetA", ("Nodes",)),
        Box("MasterRole", "role", "masters", ("kubernetes-master",), None, ("MasterRole",)),
        Box("NodeRole", "role", "nodes", ("kubernetes-minion",), None, ("NodeRole",)),
        Box("Secret", "secret", "Cluster's certificates", ("Secrets Manager",), None, ("Secret",)),
        Box("Bucket", "bucket", "Backups", ("kubernetes-backups-123456789012",), None, ("Bucket",)),
    ]  # fmt: skip
    arrows = [
        Arrow("source:internet", "InternetGateway", "route", "", ("RouteToInternet",)),
        Arrow("InternetGateway", "MasterA", "traffic", "TCP 443", ("MasterApi",)),
        Arrow("source:admin", "InternetGateway", "traffic", "TCP 22", ("MasterSsh",)),
        Arrow("Nodes", "MasterA", "traffic", "TCP 443", ("NodesToApi",)),
        Arrow("MasterA", "Nodes", "traffic", "TCP 10250", ("MasterToKubelet",)),
        Arrow("Nodes", "Nodes", "traffic", "all", ("NodesToNodes",)),
        Arrow("MasterA", "MasterRole", "use", "", ("MasterProfile",)),
        Arrow("Nodes", "NodeRole", "use", "", ("NodeProfile",)),
        Arrow("MasterRole", "Secret", "permission", "read", ("MasterPolicy",)),
        Arrow("MasterRole", "Bucket", "permission", "read, write", ("MasterPolicy",)),
        Arrow("NodeRole", "Secret", "permission", "read", ("NodePolicy",)),
    ]
    return _picture("kubernetes in us-west-2", boxes, arrows)


def production_cluster() -> Picture:
    """Three zones, three masters, six groups of nodes behind NAT gateways and a load balancer."""
    zones = "abc"
    boxes = [
        Box("source:internet", "source", "Internet", ("0.0.0.0/0",)),
        Box("source:office", "source", "Office", ("203.0.113.0/24", "198.51.100.0/24")),
        Box("dns:api", "dns", "api.prod.example.com", ("Route 53", "alias of the load balancer"), None, ("ApiRecord",)),
        Box("Vpc", "vpc", "VPC production", ("10.0.0.0/16", "fd00:ec2::/56"), None, ("Vpc",)),
        Box("InternetGateway", "gateway", "Internet gateway", (), "Vpc", ("InternetGateway",)),
        Box("ApiLoadBalancer", "load-balancer", "API", ("Network Load Balancer", "internet-facing"), "Vpc",
            ("ApiLoadBalancer", "ApiListener", "ApiTargetGroup")),
    ]  # fmt: skip
    arrows = [
        Arrow("source:internet", "InternetGateway", "route", "", ("RouteToInternet",)),
        Arrow("source:office", "ApiLoadBalancer", "traffic", "TCP 443", ("ApiFromOffice",)),
        Arrow("dns:api", "ApiLoadBalancer", "use", "", ("ApiRecord",)),
    ]
    for number, zone in enumerate(zones):
        upper = zone.upper()
        boxes += [
            Box(f"zone:{zone}", "zone", f"eu-central-1{zone}", (), "Vpc"),
            Box(f"Public{upper}", "subnet", "Public subnet", (f"10.0.{number * 16}.0/20",), f"zone:{zone}",
                (f"Public{upper}",)),
            Box(f"Nat{upper}", "gateway", "NAT gateway", (f"192.0.2.{number + 10}",), f"Public{upper}",
                (f"Nat{upper}", f"Nat{upper}Address")),
            Box(f"Private{upper}", "subnet", "Private subnet", (f"10.0.{128 + number * 16}.0/20",), f"zone:{zone}",
                (f"Private{upper}",)),
            Box(f"Master{upper}", "instances", f"master {zone}", ("m6i.large", "Flatcar 3815.2.0"), f"Private{upper}",
                (f"Master{upper}",)),
            Box(f"Master{upper}Volume", "volume", "etcd", ("50 GiB gp3",), f"Master{upper}", (f"Master{upper}Volume",)),
        ]  # fmt: skip
        arrows += [
            Arrow("ApiLoadBalancer", f"Master{upper}", "traffic", "TCP 6443", ("ApiListener",)),
            Arrow(f"Nat{upper}", "InternetGateway", "route", "", (f"Nat{upper}Route",)),
            Arrow(f"Master{upper}", f"Nat{upper}", "route", "", (f"Private{upper}Route",)),
        ]
    groups = [("general", "a"), ("general", "b"), ("general", "c"), ("memory", "a"), ("spot", "b"), ("gpu", "c")]
    for name, zone in groups:
        box = f"Nodes{name.title()}{zone.upper()}"
        types = {"general": "3 x m6i.xlarge", "memory": "2 x r6i.2xlarge", "gpu": "1 x g5.xlarge"}
        boxes.append(
            Box(box, "instances", f"{name}-{zone}", (types.get(name, "0 to 20 x m6i.large, m5.large, m5a.large"),),
                f"Private{zone.upper()}", (box,))
        )  # fmt: skip
        arrows.append(Arrow(box, "ApiLoadBalancer", "traffic", "TCP 6443", (f"{box}ToApi",)))
    for service in ("s3", "ec2", "sts", "ecr.api", "secretsmanager", "logs"):
        boxes.append(Box(f"endpoint:{service}", "endpoint", service, ("Gateway" if service == "s3" else "Interface",),
                         "Vpc", (f"Endpoint{service}",)))  # fmt: skip
    for role in ("masters", "nodes", "ebs-csi", "autoscaler", "external-dns"):
        boxes.append(Box(f"role:{role}", "role", role, (f"production-{role}",), None, (f"Role{role}",)))
    boxes += [
        Box("Bucket", "bucket", "etcd backups", ("versioned, 30 days",), None, ("Bucket", "BucketPolicy")),
        Box("Secrets", "secret", "Certificates", ("Secrets Manager",), None, ("SecretCa", "SecretTokens")),
        Box("Key", "key", "KMS key", ("alias/production",), None, ("Key", "KeyAlias")),
    ]
    arrows += [
        Arrow("MasterA", "role:masters", "use"),
        Arrow("MasterB", "role:masters", "use"),
        Arrow("MasterC", "role:masters", "use"),
        Arrow("role:masters", "Bucket", "permission", "read, write", ("MasterPolicy",)),
        Arrow("role:masters", "Secrets", "permission", "read", ("MasterPolicy",)),
        Arrow("role:nodes", "Secrets", "permission", "read", ("NodePolicy",)),
        Arrow("Bucket", "Key", "use", "", ("Bucket",)),
        Arrow("Secrets", "Key", "use", "", ("SecretCa",)),
    ]
    return _picture("production in eu-central-1", boxes, arrows)


def access() -> Picture:
    """Who reaches whom: sources, twelve security groups, and forty rules."""
    groups = ["masters", "nodes", "api-load-balancer", "bastion", "endpoints", "ingress-public", "ingress-internal",
              "database", "cache", "pods-billing", "pods-search", "monitoring"]  # fmt: skip
    boxes = [
        Box("source:internet", "source", "Internet", ("0.0.0.0/0",)),
        Box("source:office", "source", "Office", ("203.0.113.0/24",)),
        Box("source:vpn", "source", "VPN", ("10.8.0.0/16",)),
    ]
    boxes += [Box(f"group:{name}", "security-group", name, (), None, (f"Sg{name}",)) for name in groups]
    rules = [
        ("source:internet", "ingress-public", "TCP 80", "TCP 443"),
        ("source:office", "bastion", "TCP 22"), ("source:office", "api-load-balancer", "TCP 443"),
        ("source:vpn", "api-load-balancer", "TCP 443"), ("source:vpn", "ingress-internal", "TCP 443"),
        ("api-load-balancer", "masters", "TCP 6443"), ("bastion", "masters", "TCP 22"), ("bastion", "nodes", "TCP 22"),
        ("nodes", "masters", "TCP 6443", "UDP 8472"), ("masters", "nodes", "TCP 10250", "UDP 8472", "TCP 30000-32767"),
        ("masters", "masters", "TCP 2379-2380", "TCP 6443"), ("nodes", "nodes", "all"),
        ("masters", "endpoints", "TCP 443"), ("nodes", "endpoints", "TCP 443"),
        ("ingress-public", "nodes", "TCP 30000-32767"), ("ingress-internal", "nodes", "TCP 30000-32767"),
        ("pods-billing", "database", "TCP 5432"), ("pods-search", "cache", "TCP 6379"), ("nodes", "cache", "TCP 6379"),
        ("pods-billing", "cache", "TCP 6379"), ("masters", "pods-billing", "TCP 8443"),
        ("nodes", "pods-billing", "all"), ("nodes", "pods-search", "all"),
        ("pods-billing", "nodes", "UDP 53", "TCP 53"),
        ("pods-search", "nodes", "UDP 53", "TCP 53"), ("monitoring", "nodes", "TCP 9100", "TCP 10250"),
        ("monitoring", "masters", "TCP 9100", "TCP 2381", "TCP 10257", "TCP 10259"),
        ("monitoring", "pods-billing", "TCP 9090"), ("monitoring", "pods-search", "TCP 9090"),
        ("monitoring", "database", "TCP 9187"), ("bastion", "database", "TCP 5432"),
    ]  # fmt: skip
    arrows = [
        Arrow(
            source if ":" in source else f"group:{source}",
            f"group:{target}",
            "traffic",
            label,
            (f"Rule{index}{label}",),
        )
        for index, (source, target, *labels) in enumerate(rules)
        for label in labels
    ]
    return _picture("Who reaches whom: production in eu-central-1", boxes, arrows)


def permissions() -> Picture:
    """What roles may do: eight roles and twenty targets."""
    roles = ["masters", "nodes", "bastion", "ebs-csi-controller", "cluster-autoscaler", "external-dns", "cert-manager",
             "load-balancer-controller"]  # fmt: skip
    targets: list[tuple[BoxKind, str]] = [
        ("bucket", "etcd backups"), ("bucket", "access logs"), ("secret", "Cluster's certificates"),
        ("secret", "Tokens"),
        ("key", "alias/production"), ("dns", "example.com"),
        ("permission", "ec2: describe"), ("permission", "ec2: volumes"),
        ("permission", "ec2: security groups"), ("permission", "ec2: routes"), ("permission", "ec2: addresses"),
        ("permission", "autoscaling: describe"), ("permission", "autoscaling: capacity"), ("permission", "ecr: pull"),
        ("permission", "elasticloadbalancing"), ("permission", "acm: certificates"), ("permission", "wafv2"),
        ("permission", "logs: write"), ("permission", "ssm: sessions"), ("permission", "kms: grants"),
    ]  # fmt: skip
    uses = {
        "masters": [(0, "read, write"), (2, "read, write"), (3, "read"), (4, "use"), (6, ""), (7, "tagged"),
                    (8, "tagged"), (9, "own VPC"), (11, ""), (13, ""), (14, "tagged"), (17, "")],
        "nodes": [(2, "read"), (3, "read"), (6, ""), (13, ""), (17, ""), (18, "")],
        "bastion": [(1, "write"), (18, "")],
        "ebs-csi-controller": [(4, "use"), (6, ""), (7, "tagged"), (19, "")],
        "cluster-autoscaler": [(6, ""), (11, ""), (12, "tagged")],
        "external-dns": [(5, "records")],
        "cert-manager": [(5, "TXT records")],
        "load-balancer-controller": [(6, ""), (8, "tagged"), (10, ""), (14, "tagged"), (15, "read"), (16, "")],
    }  # fmt: skip
    boxes = [Box(f"role:{name}", "role", name, (f"production-{name}",), None, (f"Role{name}",)) for name in roles]
    boxes += [Box(f"target:{index}", kind, title) for index, (kind, title) in enumerate(targets)]
    arrows = [
        Arrow(f"role:{role}", f"target:{index}", "permission", label, (f"Policy{role}",))
        for role, rows in uses.items()
        for index, label in rows
    ]
    return _picture("What roles may do: production in eu-central-1", boxes, arrows)


def deployment() -> Picture:
    """The default cluster with what a deployment changes."""
    picture = default_cluster()
    changes: dict[str, Change] = {
        "Nodes": "changed", "MasterA": "replaced", "MasterALaunchTemplate": "replaced", "Bucket": "added",
        "MasterSsh": "removed", "NodesToApi": "added", "NodeRole": "removed", "MasterToKubelet": "changed",
    }  # fmt: skip
    return Picture(picture.title, picture.boxes, picture.arrows, picture.snippets, changes)


EXAMPLES: dict[str, Callable[[], Picture]] = {
    "default": default_cluster,
    "production": production_cluster,
    "access": access,
    "permissions": permissions,
    "deployment": deployment,
}


def _picture(title: str, boxes: list[Box], arrows: list[Arrow]) -> Picture:
    names = dict.fromkeys(name for part in (*boxes, *arrows) for name in part.logical_ids)
    snippets = {
        name: json.dumps({name: {"Type": "AWS::EC2::Thing", "Properties": {"Name": f"</script><b>{name}&"}}}, indent=2)
        for name in names
    }
    return Picture(title, tuple(boxes), tuple(arrows), snippets)
