"""What becomes of instances of the sandbox, and of what a cluster's controllers make, when something happens."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace

import pytest
from cluster_objects import add_load_balancer, claim, kubectl, pod_with
from sandboxed import MASTERS, NODES, failures, place, said

from cfngen.cluster.load import parse
from cfngen.sandbox.cloudformation import client

pytestmark = pytest.mark.drill


def test_a_terminated_node_is_silent_then_forgotten_and_replaced() -> None:
    with place() as where:
        where.create()
        state, account = where.account.cluster("kubernetes").state, where.account
        lost = where.instances(NODES)[0].id
        client("ec2", account.region).terminate_instances(InstanceIds=[lost])
        account.advance(1)
        account.advance(51)
        conditions = {condition["type"]: condition for condition in state.get("nodes", lost)["status"]["conditions"]}
        assert (conditions["Ready"]["status"], conditions["Ready"]["reason"]) == ("Unknown", "NodeStatusUnknown")
        account.advance(20)
        assert state.get("nodes", lost) is None
        assert not [pod for pod in state.list("pods") if pod["spec"].get("nodeName") == lost]
        assert {pod["status"]["phase"] for pod in state.list("pods")} == {"Running"}
        account.advance(120)
        replacement = where.instances(NODES)[-1]
        assert replacement.id != lost
        assert said(replacement)[-1].startswith("done in ")
        assert any("is in CREATE_COMPLETE state" in line for line in said(replacement))
        assert {node["metadata"]["name"] for node in state.list("nodes")} == set(account.machines.instances) - {lost}


def test_a_new_master_resumes_the_cluster_of_the_volume() -> None:
    with place() as where:
        where.create()
        account, before = where.account, where.secret("caSecretArn")
        state = account.cluster("kubernetes").state
        [old] = where.instances(MASTERS)
        client("ec2", account.region).terminate_instances(InstanceIds=[old.id])
        account.advance(1)
        with pytest.raises(KeyError):
            account.cluster("kubernetes")
        account.advance(200)
        assert account.cluster("kubernetes").state is state
        new = where.instances(MASTERS)[-1]
        assert "] control plane: continued with the etcd data on the volume" in "\n".join(said(new))
        assert where.secret("caSecretArn") == before
        assert {node["metadata"]["name"] for node in state.list("nodes")} == set(account.machines.instances) - {old.id}


def test_a_failing_step_is_told_to_cloudformation_and_on_the_console() -> None:
    with place() as where:
        where.account.machines.inject_failure(
            NODES, "downloads", "waited 600 s for download: timed out", hint="mirror down?"
        )
        stack = where.create()
        assert stack.status == "ROLLBACK_COMPLETE"
        assert "FAILURE signal" in failures(stack)[NODES]
        # The others fail when the group is already being deleted.
        [(last, signal)] = [
            said(instance)[-2:] for instance in where.instances(NODES) if said(instance)[-1].startswith("signalled ")
        ]
        words = "waited 600 s for download: timed out. What to do: mirror down?"
        assert re.fullmatch(rf"\[\d+/\d+] downloads FAILED after \d+\.\d s: {re.escape(words)}", last)
        assert signal == "signalled FAILURE"


def test_a_creation_that_was_kept_twice_is_finished_by_a_third_attempt() -> None:
    """Its master boots once, when the stack has failed and accepts no signal; the wait condition comes later."""
    with place() as where:
        where.account.machines.inject_failure(NODES, "downloads", "no mirror")
        stack = where.create(on_failure="DO_NOTHING")
        assert stack.status == "CREATE_FAILED"
        where.account.advance(300)
        assert where.update(where.cluster, disable_rollback=True).status == "UPDATE_FAILED"
        where.account.machines.remove_faults()
        where.account.advance(300)
        assert where.update(where.cluster, disable_rollback=True).status == "UPDATE_COMPLETE", stack.reason


def test_a_cluster_is_deleted_with_the_routes_of_its_pods() -> None:
    with place() as where:
        stack = where.create()
        cloud = where.account.cloud
        cloud.delete_stack(stack.name)
        assert cloud.wait(stack).status == "DELETE_COMPLETE"
        assert where.account.clusters == []
        assert where.create("again").status == "CREATE_COMPLETE"
        assert where.account.cluster("kubernetes").references["stack"] == "again"


def test_an_instance_waits_in_vain_for_a_program_that_its_stack_lacks() -> None:
    with place() as where:
        stack = where.create()
        lost, *others = where.instances(NODES)
        program = lost.boot_data.configuration["program"]["resource"]
        del stack.resources[program]
        client("ec2", where.account.region).terminate_instances(InstanceIds=[lost.id])
        where.account.advance(1)
        where.account.advance(3600)
        replacement = where.instances(NODES)[-1]
        words = f"Resource {program} does not exist for stack k8s"
        assert replacement not in (lost, *others)
        assert f"waiting for the program in {program} (60 s): {words}" in said(replacement)
        failed = next(line for line in said(replacement) if "FAILED" in line)
        assert f"{words}. What to do: check that the stack still has this resource" in failed
        assert len(where.account.cluster("kubernetes").state.list("nodes")) == 4


def test_a_node_waits_for_masters_of_its_version() -> None:
    with place() as where:
        where.create()
        secrets, information = client("secretsmanager", where.account.region), where.secret("joinSecretArn")
        arn = where.instances(NODES)[0].boot_data.references["joinSecretArn"]

        def masters_have(version: str) -> None:
            told = json.dumps({**information, "kubernetesVersion": version})
            secrets.put_secret_value(SecretId=arn, SecretString=told)

        assert information["kubernetesVersion"] == "v1.36.3"
        masters_have("v1.35.9")
        client("ec2", where.account.region).terminate_instances(InstanceIds=[where.instances(NODES)[0].id])
        where.account.advance(1)
        where.account.advance(600)
        node = where.instances(NODES)[-1]
        why = "this node's kubelet is v1.36.3 and a master is still v1.35.9: masters are updated first"
        assert f"waiting for masters of this version (60 s): {why}" in said(node)
        assert where.account.cluster("kubernetes").state.get("nodes", node.id) is None
        masters_have("v1.36.0")
        where.account.advance(60)
        assert any(re.search(r"] masters: the masters are new enough after \d+ s \(", line) for line in said(node))
        assert any("] ready: " in line for line in said(node))
        # Another master, of a newer version, does not hide that one is older.
        cluster, [master] = where.account.cluster("kubernetes"), where.instances(MASTERS)
        newer = json.loads(json.dumps(master.boot_data.configuration).replace('"v1.36.3"', '"v1.37.0"'))
        cluster.start("i-2", newer, {**master.boot_data.references, "volumeId": "vol-2"}, cluster.bundle)
        cluster.publish()
        assert (cluster.state.version, where.secret("joinSecretArn")["kubernetesVersion"]) == ("1.37.0", "v1.36.3")


def test_one_instance_of_a_group_can_fail() -> None:
    with place() as where:
        where.account.machines.inject_failure(NODES, "ready", "waited 60 s", times=1)
        where.create()
        ends = [said(instance)[-1] for instance in where.instances(NODES)]
        assert ends.count("signalled FAILURE") == 1


def test_an_instance_that_hangs_lets_the_stack_run_out_of_time() -> None:
    with place() as where:
        where.account.machines.inject_hang(NODES, "services")
        stack = where.create()
        assert stack.status == "ROLLBACK_COMPLETE"
        assert "4 " in failures(stack)[NODES]
        assert said(where.instances(NODES)[0])[-1].partition("] ")[2].startswith("downloads: fetched")


def test_nodes_say_that_they_wait_for_a_master_that_failed() -> None:
    with place() as where:
        where.account.machines.inject_hang(MASTERS, "volume")
        stack = where.create()
        assert stack.status == "ROLLBACK_COMPLETE"
        [lines] = [said(instance) for instance in where.instances(NODES) if said(instance)[-1].startswith("signalled ")]
        assert "waiting for joining (60 s): no master has published the join information yet" in lines
        assert "check the masters' consoles for a failed boot" in lines[-2]
        assert lines[-1] == "signalled FAILURE"


def test_machines_that_are_healed_boot_again() -> None:
    with place() as where:
        where.account.machines.inject_hang(NODES, "services")
        where.account.machines.remove_faults()
        assert where.create().status == "CREATE_COMPLETE"


def test_instances_that_failed_try_again_once_the_cause_is_gone() -> None:
    with place() as where:
        where.account.machines.inject_failure(NODES, "downloads", "no mirror")
        where.create(on_failure="DO_NOTHING")
        where.account.machines.remove_faults()
        where.account.advance(600)
        assert {said(instance)[-1].partition(" in ")[0] for instance in where.instances(NODES)} == {"done"}
        assert len(where.account.cluster("kubernetes").state.list("nodes")) == 1 + len(where.instances(NODES))


def test_instances_of_others_do_nothing() -> None:
    with place() as where:
        ec2 = client("ec2", where.account.region)
        image = where.account.cloud.parameter_store["/aws/service/debian/release/13/latest/amd64"]
        ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, UserData=base64.b64encode(b"#!/bin/sh").decode())
        where.account.advance(5)
        where.account.machines.refresh()
        assert where.account.machines.instances == {}


def test_a_balancer_is_made_and_removed_with_all_that_belongs_to_it() -> None:
    with place() as where:
        where.create()
        account, region = where.account, where.account.region
        cluster = account.cluster("kubernetes")
        ec2, elb = client("ec2", region), client("elb", region)
        groups = len(ec2.describe_security_groups()["SecurityGroups"])
        service = add_load_balancer(cluster.controllers, "web")
        [balancer] = elb.describe_load_balancers()["LoadBalancerDescriptions"]
        assert service["status"]["loadBalancer"]["ingress"] == [{"hostname": balancer["DNSName"]}]
        tags = elb.describe_tags(LoadBalancerNames=[balancer["LoadBalancerName"]])["TagDescriptions"][0]["Tags"]
        assert {tag["Key"]: tag["Value"] for tag in tags} == {
            "KubernetesCluster": "kubernetes",
            "kubernetes.io/cluster/kubernetes": "owned",
            "kubernetes.io/service-name": "default/web",
        }
        [group] = ec2.describe_security_groups(GroupIds=balancer["SecurityGroups"])["SecurityGroups"]
        assert group["GroupName"] == f"k8s-elb-{balancer['LoadBalancerName']}"
        assert len(ec2.describe_security_groups()["SecurityGroups"]) == groups + 1
        cluster.controllers.delete_object("services", service)
        assert "deletionTimestamp" in service["metadata"]
        account.advance(20)
        assert cluster.state.get("services", "web", "default") is None
        assert elb.describe_load_balancers()["LoadBalancerDescriptions"] == []
        assert len(ec2.describe_security_groups()["SecurityGroups"]) == groups
        rules = ec2.describe_security_group_rules()["SecurityGroupRules"]
        assert not [rule for rule in rules if rule.get("ReferencedGroupInfo", {}).get("GroupId") == group["GroupId"]]


def test_a_network_balancer_is_made_and_removed() -> None:
    with place() as where:
        where.create()
        cluster, elbv2 = where.account.cluster("kubernetes"), client("elbv2", where.account.region)
        service = add_load_balancer(cluster.controllers, "tcp", network_load_balancer=True)
        [balancer] = elbv2.describe_load_balancers()["LoadBalancers"]
        assert balancer["Type"] == "network"
        cluster.controllers.delete_object("services", service)
        where.account.advance(20)
        assert elbv2.describe_load_balancers()["LoadBalancers"] == []
        assert elbv2.describe_target_groups()["TargetGroups"] == []


def test_without_the_driver_a_claim_stays_pending() -> None:
    with place() as where:
        group = {"name": "nodes", "minSize": 1, "maxSize": 1}
        cluster = parse({"addons": {"awsEbsCsiDriver": {"enabled": False}}, "nodeGroups": [group]})
        assert replace(where, cluster=cluster).create().status == "CREATE_COMPLETE"
        kubernetes = where.account.cluster("kubernetes")
        made = kubectl(kubernetes, "POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim())
        pod = kubectl(kubernetes, "POST", "/api/v1/namespaces/default/pods", pod_with("data"))
        where.account.advance(120)
        assert kubectl(kubernetes, "GET", "/apis/storage.k8s.io/v1/storageclasses")["items"] == []
        assert (made["status"]["phase"], pod["status"]["phase"]) == ("Pending", "Pending")
        messages = {each["message"] for each in kubectl(kubernetes, "GET", "/api/v1/events")["items"]}
        assert "no persistent volumes available for this claim and no storage class is set" in messages


def test_masters_and_nodes_take_the_version_that_they_are_told() -> None:
    with place() as where:
        where.create()
        cluster = where.account.cluster("kubernetes")
        where.update(where.with_kubernetes("1.35"))
        assert cluster is where.account.cluster("kubernetes")
        told = where.instances(MASTERS)[-1].boot_data.version("kubelet")
        assert told.startswith("1.35.")
        assert cluster.state.version == told
        where.account.advance(60)  # the last old node leaves after the update is complete
        nodes = {node["status"]["nodeInfo"]["kubeletVersion"] for node in cluster.state.list("nodes")}
        assert nodes == {f"v{told}"}


def test_a_masters_volume_and_interface_are_attached_while_it_runs() -> None:
    with place() as where:
        stack = where.create()
        ec2, account = client("ec2", where.account.region), where.account
        volume, interface = (stack.resources[f"MasterA{each}"].physical_id for each in ("Volume", "NetworkInterface"))

        def attached() -> list[str]:
            [disk] = ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
            [card] = ec2.describe_network_interfaces(NetworkInterfaceIds=[interface])["NetworkInterfaces"]
            cards = [card["Attachment"]["InstanceId"]] if "Attachment" in card else []
            return [attachment["InstanceId"] for attachment in disk["Attachments"]] + cards

        [old] = where.instances(MASTERS)
        assert attached() == [old.id, old.id]
        [master] = ec2.describe_instances(InstanceIds=[old.id])["Reservations"][0]["Instances"]
        assert (master["PrivateIpAddress"], master["PublicIpAddress"]) == ("172.20.0.9", old.public_address)
        assert old.address == "172.20.0.9"
        assert all(instance.address.startswith("172.20.") for instance in where.instances(NODES))
        ec2.terminate_instances(InstanceIds=[old.id])
        account.advance(1)
        account.advance(200)
        new = where.instances(MASTERS)[-1]
        assert new.id != old.id
        assert attached() == [new.id, new.id]
        account.cloud.delete_stack(stack.name)
        assert account.cloud.wait(stack).status == "DELETE_COMPLETE"
