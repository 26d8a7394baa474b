"""The emulator itself: whatever happens to a stack, the account has what the stacks say; deletion leaves nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest
from small_stacks import REGION, gateways, nested, table, tagged, text, vpc, vpcs

from cfngen.sandbox.cloudformation import CloudFormation, Stack, ValidationError, client
from cfngen.sandbox.cloudformation.stack import STABLE_STATUSES

pytestmark = pytest.mark.drill

STEPS = 6
ANYTHING = ("A", "B", "X", "Y", "G", "H", "Vpc", "Table")


def resources(chance: random.Random, names: tuple[str, ...]) -> dict[str, Any]:
    found = {name: tagged(a=str(chance.randint(1, 3))) for name in chance.sample(names, chance.randint(1, len(names)))}
    if chance.random() < 0.5:
        found["Vpc"] = vpc(f"10.{chance.randint(0, 2)}.0.0/16")
        found["Table"] = table({"Ref": "Vpc"})
    return found


def template(chance: random.Random) -> str:
    """A template of gateways, networks and up to two nested stacks, of which one may hear from the other."""
    found = resources(chance, ("A", "B"))
    hears: dict[str, Any] = {}
    for name in chance.sample(("X", "Y"), chance.randint(0, 2)):
        child = resources(chance, ("G", "H"))
        first = min(each for each in child if len(each) == 1)
        child[first]["Properties"]["Tags"].append({"Key": "heard", "Value": {"Ref": "Word"}})
        word = {"Parameters": {"Word": {"Type": "String", "Default": "x"}}, "Outputs": {"O": {"Value": {"Ref": first}}}}
        found[name] = nested(f"child-{chance.random()}", text(child, **word), **hears)
        hears = {"Parameters": {"Word": {"Fn::GetAtt": f"{name}.Outputs.O"}}} if chance.random() < 0.6 else {}
    return text(found)


def said(stack: Stack) -> set[str]:
    """What the stack and its nested stacks say they have."""
    found = {
        resource.physical_id for resource in stack.resources.values() if resource.child is None and resource.exists
    }
    return found.union(*(said(each) for each in stack.children.values()))


def there() -> set[str]:
    """What the account has."""
    tables = client("ec2", REGION).describe_route_tables()["RouteTables"]
    own = {table["RouteTableId"] for table in tables if not any(used.get("Main") for used in table["Associations"])}
    return {*gateways(), *vpcs(), *own}


def change(cloud: CloudFormation, chance: random.Random, step: int) -> None:
    """Update the stack in one way or another, perhaps only in part."""
    disable_rollback = chance.random() < 0.3 or cloud.stack("s").status == "UPDATE_FAILED"
    if chance.random() < 0.5:
        change_set = cloud.create_change_set("s", f"c{step}", body=template(chance), nested=chance.random() < 0.8)
        cloud.advance(10)
        if change_set.status == "CREATE_COMPLETE":
            cloud.execute_change_set(change_set.id, disable_rollback=disable_rollback)
    else:
        cloud.update_stack("s", body=template(chance), disable_rollback=disable_rollback)
    cloud.advance(chance.randint(0, 4))
    if chance.random() < 0.3 and cloud.stack("s").status == "UPDATE_IN_PROGRESS":
        cloud.cancel_update("s")


@pytest.mark.parametrize("seed", range(12))
def test_a_history(seed: int) -> None:
    chance = random.Random(seed)
    cloud = CloudFormation(REGION, durations={"*": 1})
    stack = cloud.wait(cloud.create_stack("s", body=template(chance)))
    for step in range(STEPS):
        for _ in range(chance.randint(0, 2)):
            during = chance.choice(("CREATE", "UPDATE", "UPDATE"))
            cloud.fail(chance.choice(ANYTHING), "because", during=during, times=chance.choice((1, 1, 2)))
        if stack.status == "UPDATE_ROLLBACK_FAILED":
            cloud.continue_rollback("s")
        elif stack.status == "UPDATE_FAILED" and chance.random() < 0.5:
            cloud.rollback_stack("s")
        else:
            try:
                change(cloud, chance, step)
            except ValidationError as refused:
                if str(refused) != "No updates are to be performed.":
                    raise
        cloud.wait(stack)
        if stack.status in STABLE_STATUSES:
            assert there() == said(stack)
            assert {child.status for child in stack.children.values()} <= STABLE_STATUSES
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"
    assert there() == set()
    assert {stack.status for stack in cloud.stacks()} == {"DELETE_COMPLETE"}
