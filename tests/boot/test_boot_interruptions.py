"""Signals that come together: spot notices, rebalance recommendations, terminations; one owner for each completion.

The drain service and the service for recommendations are the real ones, on nodes in simulated time.
"""

from __future__ import annotations

import pytest
import termination_handler
from interrupted_cluster import NOTICE_SECONDS, Pod, SpotCluster, SpotNode

from cfngen.boot.node import rebalancing

HOUR = 3600.0


def cluster_of_two(*, pods: int = 3, grace: float = 30, rebalance: str = "") -> tuple[SpotCluster, SpotNode]:
    """Return a cluster and the one of its two nodes that runs all pods."""
    cluster = SpotCluster()
    node = cluster.add_node("i-old", rebalance=rebalance)
    cluster.add_node("i-other")
    cluster.pods = {f"p{number}": Pod("i-old", grace) for number in range(pods)}
    return cluster, node


def moved_once(cluster: SpotCluster) -> bool:
    """Return whether all pods run on other nodes, and none was deleted twice or lost with its instance."""
    names = sorted(cluster.pods)
    return not cluster.lost and all(name.count("x") == 1 for name in names)


def test_notice_and_termination_at_once_complete_the_lifecycle_action_once_when_all_pods_are_gone() -> None:
    """With capacity rebalancing, Auto Scaling calls the hook when EC2 gives its notice."""
    cluster, node = cluster_of_two(grace=60)
    node.interrupt()
    node.terminate()
    cluster.timeline.run(HOUR)
    [(second, pods)] = node.completed
    assert pods == []
    assert 60 <= second < NOTICE_SECONDS
    assert moved_once(cluster)


@pytest.mark.parametrize("seconds", [1, 20, 50, 99, 110])
def test_termination_amid_the_drain_of_an_interrupted_instance_is_completed_once(seconds: float) -> None:
    cluster, node = cluster_of_two(grace=60)
    node.interrupt()
    cluster.timeline.at(seconds, node.terminate)
    cluster.timeline.run(HOUR)
    [(second, pods)] = node.completed
    assert pods == []
    assert second >= max(60, seconds)
    assert moved_once(cluster)


def test_notice_amid_a_rolling_updates_termination_ends_the_instance_after_two_minutes_and_not_earlier() -> None:
    cluster, node = cluster_of_two(pods=3, grace=5)
    cluster.min_available = 3
    node.terminate()
    cluster.timeline.at(30, node.interrupt)
    cluster.timeline.run(149)
    assert (node.alive, node.completed) == (True, [])
    assert max(node.heartbeats) > 100

    cluster, node = cluster_of_two(pods=3, grace=5)
    cluster.min_available = 3
    node.terminate()
    cluster.timeline.at(30, node.interrupt)
    cluster.timeline.run(HOUR)
    # EC2 does not wait for the hook, nor for a budget that never allows an eviction.
    assert (node.alive, node.completed, len(cluster.lost)) == (False, [], 3)


def test_budget_holds_while_an_interrupted_instance_is_drained() -> None:
    cluster, node = cluster_of_two(pods=4, grace=5)
    cluster.min_available = 3
    fewest = []
    for second in range(NOTICE_SECONDS):
        cluster.timeline.at(second, lambda: fewest.append(cluster.available))
    node.interrupt()
    cluster.timeline.run(HOUR)
    assert min(fewest) == 3
    assert moved_once(cluster)


def test_recommendation_moves_pods_long_before_the_interruption() -> None:
    cluster, node = cluster_of_two(rebalance="drain")
    node.recommend()
    cluster.timeline.at(600, node.interrupt)
    cluster.timeline.run(599)
    assert (node.cordoned, node.alive) == (True, True)
    assert moved_once(cluster)
    assert node.services["rebalance"].result == (
        "EC2 recommends to rebalance this Spot Instance: all its pods are gone after 0 s"
    )


def test_recommendation_keeps_new_pods_away_and_leaves_the_others() -> None:
    cluster, node = cluster_of_two(rebalance="cordon")
    node.recommend()
    cluster.timeline.run(HOUR)
    assert node.cordoned
    assert sorted(cluster.pods) == ["p0", "p1", "p2"]
    # A load balancer's target until its pods are moved.
    assert all("exclude-from-external" not in command for command in node.commands)


def test_nothing_happens_without_a_recommendation() -> None:
    cluster, node = cluster_of_two(rebalance="drain")
    cluster.timeline.run(600)
    assert (node.cordoned, len(node.pods())) == (False, 3)


@pytest.mark.parametrize("rebalance", ["cordon", "drain"])
@pytest.mark.parametrize("terminated", [True, False])
def test_recommendation_together_with_the_notice_leaves_the_pods_to_the_drain_service(
    rebalance: str, terminated: bool
) -> None:
    cluster, node = cluster_of_two(rebalance=rebalance)
    node.recommend()
    node.interrupt()
    if terminated:
        node.terminate()
    cluster.timeline.run(HOUR)
    assert node.services["rebalance"].result == rebalancing.TAKEN_OVER
    assert moved_once(cluster)
    assert len(node.completed) == terminated


@pytest.mark.parametrize("seconds", [1, 6, 30, 100])
def test_notice_amid_the_drain_of_a_recommendation_takes_over(seconds: float) -> None:
    cluster, node = cluster_of_two(grace=5, rebalance="drain")
    cluster.min_available = 3
    node.recommend()
    cluster.timeline.at(seconds, node.interrupt)
    cluster.timeline.run(HOUR)
    assert str(node.services["rebalance"].result).endswith(rebalancing.TAKEN_OVER)
    assert node.said[0].startswith("EC2 is about to interrupt this Spot Instance: 3 pods remain after 100 s")


def test_recommendation_during_a_rolling_update_leaves_nothing_to_drain() -> None:
    cluster, node = cluster_of_two(rebalance="drain")
    node.recommend()
    cluster.timeline.at(100, node.terminate)
    cluster.timeline.run(HOUR)
    [(second, pods)] = node.completed
    assert (second, pods) == (100, [])
    assert moved_once(cluster)


def test_recommendation_amid_a_termination_is_left_to_the_drain_service() -> None:
    cluster, node = cluster_of_two(rebalance="drain")
    node.terminate()
    cluster.timeline.at(2, node.recommend)
    cluster.timeline.run(HOUR)
    assert node.services["rebalance"].result == rebalancing.TAKEN_OVER
    assert [pods for _, pods in node.completed] == [[]]


def test_service_for_recommendations_never_speaks_to_auto_scaling() -> None:
    cluster, node = cluster_of_two(grace=5, rebalance="drain")
    cluster.min_available = 3
    node.recommend()
    cluster.timeline.run(HOUR)
    assert node.calls == []
    result = str(node.services["rebalance"].result)
    assert "not drained within 5 min; in the last round, 3 pods remain after 15 s: default/p0" in result


def test_api_server_that_is_away_is_asked_again() -> None:
    for rebalance in ("cordon", "drain"):
        cluster, node = cluster_of_two(rebalance=rebalance)
        node.away = True
        node.recommend()
        cluster.timeline.at(60, lambda node=node: setattr(node, "away", False))  # type: ignore[misc]
        cluster.timeline.run(HOUR)
        assert node.cordoned


def test_last_nodes_that_take_pods_stay_schedulable_until_others_do() -> None:
    cluster = SpotCluster()
    nodes = [cluster.add_node(f"i-{number}", rebalance="drain") for number in range(5)]
    cluster.pods = {f"p{number}": Pod(f"i-{number}") for number in range(5)}
    for number, node in enumerate(nodes):
        cluster.timeline.at(10 + number * 0.5, node.recommend)
    cordoned = []
    cluster.timeline.at(HOUR, lambda: cordoned.extend(node.cordoned for node in nodes))
    cluster.timeline.at(HOUR, lambda: cluster.add_node("i-new") and None)
    cluster.timeline.run(2 * HOUR)
    assert cordoned.count(False) == 1
    assert all(node.cordoned for node in nodes)
    assert {pod.node for pod in cluster.pods.values()} == {"i-new"}
    assert sum("no other node can run pods" in line for node in nodes for line in node.said) == 1


def test_storm_over_a_whole_group_moves_its_pods_to_other_groups_within_the_notice() -> None:
    cluster = SpotCluster(min_available=10)
    nodes = [cluster.add_node(f"i-{number}") for number in range(6)]
    cluster.add_node("i-on-demand")
    cluster.pods = {f"p{number}": Pod(f"i-{number % 6}", grace=15) for number in range(18)}
    fewest = []
    for second in range(NOTICE_SECONDS):
        cluster.timeline.at(second, lambda: fewest.append(cluster.available))
    for node in nodes:
        node.interrupt()
        node.terminate()
    cluster.timeline.run(HOUR)
    assert min(fewest) >= 10
    assert cluster.lost == []
    assert {pod.node for pod in cluster.pods.values()} == {"i-on-demand"}
    for node in nodes:
        assert [pods for _, pods in node.completed] == [[]]


def test_storm_over_the_only_group_keeps_no_instance_waiting() -> None:
    cluster = SpotCluster(min_available=12)
    nodes = [cluster.add_node(f"i-{number}") for number in range(4)]
    cluster.pods = {f"p{number}": Pod(f"i-{number % 4}") for number in range(12)}
    for node in nodes:
        node.interrupt()
        node.terminate()
    cluster.timeline.run(HOUR)
    # The nodes are cordoned one by one; from then on no other node can run the pods.
    assert all(second <= 15 for node in nodes for second, _ in node.completed)


@pytest.mark.parametrize("terminated", [True, False])
def test_termination_handler_and_drain_service_evict_the_same_pods_without_harm(terminated: bool) -> None:
    cluster, node = cluster_of_two(grace=60)
    node.start("handler", lambda: termination_handler.run(node, termination_handler.SPOT))
    cluster.timeline.at(7, node.interrupt)
    if terminated:
        cluster.timeline.at(7, node.terminate)
    cluster.timeline.run(HOUR)
    assert moved_once(cluster)
    assert [pods for _, pods in node.completed] == ([[]] if terminated else [])


@pytest.mark.parametrize("rule", [termination_handler.REBALANCE_CORDON, termination_handler.REBALANCE_DRAIN])
def test_handler_that_acted_on_a_recommendation_leaves_the_notice_to_the_drain_service(
    rule: termination_handler.Rule,
) -> None:
    """The handler marks a notice as processed that comes while it cordons the node (`MarkAllAsProcessed`)."""
    cluster, node = cluster_of_two()
    node.start("handler", lambda: termination_handler.run(node, rule))
    node.recommend()
    node.interrupt()
    node.terminate()
    cluster.timeline.run(HOUR)
    assert moved_once(cluster)
    assert [pods for _, pods in node.completed] == [[]]


def test_service_for_recommendations_is_started_in_the_boot() -> None:
    cluster, node = cluster_of_two(rebalance="cordon")
    cluster.timeline.run(0)
    from boots import boot_of

    said = rebalancing.start(node, boot_of({"rebalance": "cordon"}))
    assert said == "if EC2 recommends to rebalance this instance: cordon"
    assert node.ran("systemctl") == ["systemctl daemon-reload", "systemctl enable --now cfngen-rebalance.service"]
