"""helm: `upgrade --install`, `uninstall`, `show crds`, noted in secrets; a release makes one Deployment."""

import sys
import tarfile
import time

import yaml

from stand_ins import calls
from stand_ins.objects import Client, Failed

VALUED = ("--namespace", "--values", "--kubeconfig", "--history-max", "--timeout", "--version")


def main(arguments):
    calls.record("helm", arguments)
    words, options, waiting = [], {}, list(arguments)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("-"):
            words.append(word)
        elif "=" in word:
            options.update([word.split("=", 1)])
        else:
            options[word] = waiting.pop(0) if word in VALUED else ""
    if words[:2] == ["show", "crds"]:
        return
    if words[:1] == ["version"]:
        sys.stdout.write("v4.2.4\n")
        return
    if not words or words[0] not in ("upgrade", "uninstall"):
        calls.refuse(f"Error: the stand-in does not know `helm {' '.join(words[:1])}`")
    client, space = Client(options["--kubeconfig"]), options["--namespace"]
    try:
        (upgrade if words[0] == "upgrade" else uninstall)(client, space, words, options)
    except Failed as failure:
        calls.refuse(f"Error: {failure}")


def upgrade(client, space, words, options):
    name, chart = words[1:3]
    with tarfile.open(chart) as archive:
        entry = next(each for each in archive.getnames() if each.count("/") == 1 and each.endswith("/Chart.yaml"))
        about = yaml.safe_load(archive.extractfile(entry))
    client.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    metadata = {"name": name, "namespace": space, "labels": {"app.kubernetes.io/managed-by": "Helm"}}
    client.put(deployment(metadata))
    labels = {"owner": "helm", "name": name, "status": "deployed", "version": "1", "modifiedAt": str(int(time.time()))}
    note = {"name": f"sh.helm.release.v1.{name}.v1", "namespace": space, "labels": labels}
    data = {"chart": f"{about['name']}-{about['version']}"}
    client.put(
        {"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": note, "stringData": data}
    )


def deployment(metadata):
    """What a release makes: an API server takes no Deployment without selector and template."""
    labels = {"app.kubernetes.io/name": metadata["name"]}
    pod = {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10.1"}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def uninstall(client, space, words, options):
    name = words[1]
    for path in (f"/apis/apps/v1/namespaces/{space}/deployments/{name}",
                 f"/api/v1/namespaces/{space}/secrets/sh.helm.release.v1.{name}.v1"):  # fmt: skip
        try:
            client.call("DELETE", path)
        except Failed as failure:
            if failure.status != 404 or "--ignore-not-found" not in options:
                raise


if __name__ == "__main__":
    main(sys.argv[1:])
