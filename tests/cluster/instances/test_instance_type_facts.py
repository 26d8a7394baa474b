"""The facts about instance types agree with what the rest of cfngen says of them."""

from cfngen.cluster.instances import instance_types
from cfngen.cluster.instances.instance_types import InstanceTypeFacts, all_facts, facts_of
from cfngen.cluster.load import parse


def test_facts_of_a_type() -> None:
    assert facts_of("t3.medium") == InstanceTypeFacts(
        architecture="amd64",
        vcpus=2,
        memory_mib=4096,
        network_interfaces=3,
        addresses_per_interface=6,
        is_current_generation=True,
        is_burstable=True,
        has_spot=True,
    )
    gpu_facts = facts_of("g5.12xlarge")
    assert gpu_facts
    assert (gpu_facts.gpu, gpu_facts.gpu_count, gpu_facts.gpu_manufacturer) == ("A10G", 4, "NVIDIA")
    assert facts_of("x99.medium") is None


def test_architecture_is_the_one_derived_from_the_name() -> None:
    """Macs are left out: they run no Linux image, so no other part of cfngen asks for their architecture."""
    names = {name for name in all_facts() if not name.startswith("mac")}
    differing = {name for name in names if instance_types.architecture(name) != all_facts()[name].architecture}
    assert differing == set()


def test_types_with_too_little_cpu_or_memory_are_unsuitable() -> None:
    """The rules by name, which also hold for types that the table does not know, agree with the table."""
    too_small = {name for name, facts in all_facts().items() if facts.vcpus < 2 or facts.memory_mib < 1.7 * 1024}
    suitable = {name for name in all_facts() if instance_types.why_unsuitable(name, role="node") is None}
    assert too_small & suitable == set()


def test_a_cluster_that_needs_no_facts_reads_no_table() -> None:
    """The table would delay the start of every command."""
    all_facts.cache_clear()
    parse({"nodeGroups": [{"volumes": [{"size": 10, "mountPath": "/data"}]}]})
    assert all_facts.cache_info().currsize == 0
