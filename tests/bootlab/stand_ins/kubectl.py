"""kubectl: get, create, apply, replace, patch, delete, certificate approve, version; as the boot program calls them."""

import json
import re
import sys
from urllib.parse import urlencode

import yaml

from stand_ins import calls
from stand_ins.objects import Client, Failed, now, place, typed

VALUED = (
    "--kubeconfig", "--request-timeout", "--server", "-n", "--namespace", "-o", "--output", "-l", "--selector",
    "--field-selector", "--raw", "-f", "--filename", "-p", "--patch", "--type", "--field-manager", "--timeout",
)  # fmt: skip
LONG = {
    "-n": "--namespace",
    "-o": "--output",
    "-l": "--selector",
    "-f": "--filename",
    "-p": "--patch",
    "-A": "--all-namespaces",
}


def parsed(arguments):
    words, options, waiting = [], {}, list(arguments)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            words.append(word)
        elif equals:
            options[LONG.get(name, name)] = value
        elif word in VALUED:
            options[LONG.get(word, word)] = waiting.pop(0)
        elif word.startswith("-o"):
            options["--output"] = word[2:]
        else:
            options[LONG.get(word, word)] = "true"
    return words, options


def documents(options):
    name = options["--filename"]
    if name == "-":
        text = sys.stdin.read()
    else:
        with open(name) as file:
            text = file.read()
    items = [each for each in yaml.safe_load_all(text) if each]
    calls.record(
        "kubectl-objects", [f"{each['kind']}/{each['metadata'].get('name', '')}" for each in items if "kind" in each]
    )
    return [one for each in items for one in (each["items"] if each.get("kind") == "List" else [each])]


def show(found, how):
    if how == "json":
        return json.dumps(found, indent=1)
    if how == "yaml":
        return yaml.safe_dump(found)
    if how.startswith("jsonpath="):
        value = found
        for part in re.findall(r"\.([\w-]+)", how):
            value = value.get(part, "") if isinstance(value, dict) else ""
        return value if isinstance(value, str) else json.dumps(value)
    items = found.get("items", [found])
    if how == "name":
        return "\n".join(f"{each.get('kind', '').lower()}/{each['metadata']['name']}" for each in items)
    if not how:
        return "\n".join(["NAME", *(each["metadata"]["name"] for each in items)])
    return calls.refuse(f"error: the stand-in does not know the output format {how}")


def get(client, words, options, space):
    if "--raw" in options:
        return client.call("GET", options["--raw"])
    kind, _, name = words[0].partition("/")
    name = name or (words[1] if len(words) > 1 else "")
    path = typed(kind, "" if "--all-namespaces" in options else space)
    if name:
        path += "/" + name
    else:
        query = {"labelSelector": options.get("--selector", ""), "fieldSelector": options.get("--field-selector", "")}
        path += "?" + urlencode({key: value for key, value in query.items() if value})
    try:
        return show(client.get(path.rstrip("?")), options.get("--output", ""))
    except Failed as failure:
        if failure.status == 404 and "--ignore-not-found" in options:
            return ""
        raise


def create(client, words, options, space):
    if "--raw" in options:
        return client.call("POST", options["--raw"], documents(options)[0])
    for item in documents(options):
        client.call("POST", place(item, space)[0], item)
    return ""


def apply(client, words, options, space):
    for item in documents(options):
        if "--server-side" not in options:
            client.put(item)
            continue
        client.call("PATCH", place(item, space)[1], item, "application/apply-patch+yaml")
    return ""


def replace(client, words, options, space):
    for item in documents(options):
        client.call("PUT", place(item, space)[1], item)
    return ""


def patch(client, words, options, space):
    kind, _, name = words[0].partition("/")
    path = f"{typed(kind, space)}/{name or words[1]}"
    client.call("PATCH", path, json.loads(options["--patch"]), "application/merge-patch+json")
    return ""


def delete(client, words, options, space):
    kind, _, name = words[0].partition("/")
    for each in [name] if name else words[1:]:
        try:
            client.call("DELETE", f"{typed(kind, space)}/{each}")
        except Failed as failure:
            if failure.status != 404 or "--ignore-not-found" not in options:
                raise
    return ""


def certificate(client, words, options, space):
    if words[0] != "approve":
        calls.refuse(f"error: the stand-in does not know `kubectl certificate {words[0]}`")
    condition = {"type": "Approved", "status": "True", "reason": "KubectlApprove", "lastUpdateTime": now()}
    for name in words[1:]:
        path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}/approval"
        client.call("PATCH", path, {"status": {"conditions": [condition]}}, "application/merge-patch+json")
    return ""


VERBS = {
    "get": get,
    "create": create,
    "apply": apply,
    "replace": replace,
    "patch": patch,
    "delete": delete,
    "certificate": certificate,
}


def main(arguments):
    calls.record("kubectl", arguments)
    words, options = parsed(arguments)
    if words[:1] == ["version"]:
        sys.stdout.write(json.dumps({"clientVersion": {"gitVersion": calls.VERSION}}))
        return
    if not words or words[0] not in VERBS:
        calls.refuse(f"error: the stand-in does not know `kubectl {' '.join(words[:1])}`")
    seconds = float(options.get("--request-timeout", "15s").rstrip("s"))
    try:
        client = Client(options["--kubeconfig"], options.get("--server", ""), seconds)
        text = VERBS[words[0]](client, words[1:], options, options.get("--namespace", "default"))
    except Failed as failure:
        calls.refuse(str(failure))
    sys.stdout.write(text + "\n" if text else "")


if __name__ == "__main__":
    main(sys.argv[1:])
