"""etcd as its masters and its clients see it: members, votes, quorum, learners, and what a lost disk means.

It refuses what etcd refuses, and counts clusters: a second one that was begun by mistake is what nobody may ever see.
"""

from __future__ import annotations

import json
from typing import Any


class RefusedError(Exception):
    """etcd says no; the text says why."""


class Etcd:
    """All clusters of etcd that the masters' disks ever held.

    Attributes:
        clusters: members (as `etcdctl member list` shows them) by the cluster's name.
        running: the data that runs at an address: (cluster, member's id).
        begun: names of the clusters that were begun with nothing in them.
        lagging: how many requests for promotion come too early.
    """

    def __init__(self) -> None:
        self.clusters: dict[str, list[dict[str, Any]]] = {}
        self.running: dict[str, tuple[str, int]] = {}
        self.begun: list[str] = []
        self.lagging = 0
        self.ids = 0xA0

    def member(self, cluster: str, identity: int) -> dict[str, Any] | None:
        return next((each for each in self.clusters[cluster] if each["ID"] == identity), None)

    def announce(self, cluster: str, address: str, learner: bool = False, name: str = "") -> dict[str, Any]:
        self.ids += 1
        member: dict[str, Any] = {"ID": self.ids, "name": name, "peerURLs": [f"https://{address}:2380"]}
        if learner:
            member["isLearner"] = True
        self.clusters[cluster].append(member)
        return member

    def start(self, address: str, name: str, data: str, flags: dict[str, str]) -> str:
        """Start etcd at an address; return the content of its data directory, or nothing if it does not come up."""
        if data:
            cluster, identity = json.loads(data)
        elif flags.get("initial-cluster-state") == "existing":
            wanted = sorted(each.partition("=")[2] for each in flags["initial-cluster"].split(","))
            found = [
                (cluster, each["ID"])
                for cluster, members in self.clusters.items()
                if sorted(url for each in members for url in each["peerURLs"]) == wanted
                for each in members
                if each["peerURLs"] == [f"https://{address}:2380"] and not each["name"]
            ]
            if not found:
                return ""
            cluster, identity = found[-1]
        else:
            cluster = f"begun-{len(self.begun)}"
            self.begun.append(cluster)
            self.clusters[cluster] = []
            identity = self.announce(cluster, address)["ID"]
        member = self.member(cluster, identity)
        if member is None:
            # "the member has been permanently removed from the cluster": it ends at once.
            return data
        member["name"] = name
        self.running[address] = (cluster, identity)
        return json.dumps([cluster, identity])

    def stop(self, address: str) -> None:
        self.running.pop(address, None)

    def restored(self, token: str, addresses: list[str], own: str) -> str:
        """Return the data directory that a snapshot makes: all slots that use one token make one cluster."""
        if token not in self.clusters:
            self.clusters[token] = []
            for address in addresses:
                self.announce(token, address, name="from the snapshot")
        members = {each["peerURLs"][0]: each["ID"] for each in self.clusters[token]}
        return json.dumps([token, members[f"https://{own}:2380"]])

    def healthy(self, address: str) -> bool:
        """Return whether the member at an address is a voter that sees most voters of its cluster running."""
        if address not in self.running:
            return False
        cluster, identity = self.running[address]
        own = self.member(cluster, identity)
        if own is None or own.get("isLearner"):
            return False
        voters = {each["ID"] for each in self.clusters[cluster] if not each.get("isLearner")}
        up = {found for name, found in self.running.values() if name == cluster} & voters
        return 2 * len(up) > len(voters)

    def ask(self, addresses: list[str], *command: str) -> str:
        """Answer `etcdctl`'s commands about members.

        Raises:
            RefusedError: there is no quorum, or what is asked for may not be.
        """
        asked = next((each for each in addresses if self.healthy(each)), None)
        if asked is None:
            raise RefusedError("context deadline exceeded")
        cluster = self.running[asked][0]
        members = self.clusters[cluster]
        verb, *rest = command
        if verb == "list":
            return json.dumps({"members": members})
        if verb == "add":
            [url] = [each.partition("=")[2] for each in rest if each.startswith("--peer-urls=")]
            if any(url in each["peerURLs"] for each in members):
                raise RefusedError("etcdserver: Peer URLs already exists")
            if any(each.get("isLearner") for each in members):
                raise RefusedError("etcdserver: too many learner members in cluster")
            self.announce(cluster, url.removeprefix("https://").removesuffix(":2380"), learner=True)
            return ""
        found = self.member(cluster, int(rest[0], 16))
        if found is None:
            raise RefusedError("etcdserver: member not found")
        if verb == "remove":
            # etcd's --strict-reconfig-check, which is on by default (mayRemoveMember in etcdserver/server.go).
            voters = {each["ID"] for each in members if not each.get("isLearner")} - {found["ID"]}
            started = voters & {identity for name, identity in self.running.values() if name == cluster}
            if not found.get("isLearner") and 2 * len(started) <= len(voters):
                raise RefusedError("etcdserver: re-configuration failed due to not enough started members")
            members.remove(found)
            for address, running in list(self.running.items()):
                if running == (cluster, found["ID"]):
                    self.stop(address)
            return ""
        assert verb == "promote", command
        if not found.get("isLearner"):
            raise RefusedError("etcdserver: can only promote a learner member")
        if (cluster, found["ID"]) not in self.running.values() or self.lagging > 0:
            self.lagging -= 1
            raise RefusedError("etcdserver: can only promote a learner member which is in sync with leader")
        del found["isLearner"]
        return ""
