"""The monthly bill: quantities times the prices of the operator's list, and nothing invented."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from cfngen.cli.render.plan_costs import bill_lines
from cfngen.deploy.plan.costs.bill import MonthlyCost, PriceList, monthly_bill
from cfngen.deploy.preflight.quotas.demand import Demand
from cfngen.deploy.preflight.quotas.instance_counts import InstanceCount

PRICES = PriceList(
    currency="USD",
    date=date(2026, 11, 1),
    region="us-west-2",
    hoursPerMonth=Decimal(100),
    onDemand={"t3.medium": Decimal("0.04")},
    spot={"t3.medium": Decimal("0.01")},
    volumes={"gp3": Decimal("0.08")},
    publicIpv4Address=Decimal("0.005"),
    loadBalancer=Decimal("0.02"),
    natGateway=Decimal("0.05"),
    interfaceEndpoint=Decimal("0.01"),
    secret=Decimal("0.4"),
    kmsKey=Decimal(1),
    hostedZone=Decimal("0.5"),
)
EVERYTHING = Demand(
    count_by_resource_type={
        "AWS::EC2::EIP": 1,
        "AWS::ElasticLoadBalancingV2::LoadBalancer": 1,
        "AWS::EC2::NatGateway": 2,
        "AWS::SecretsManager::Secret": 2,
        "AWS::KMS::Key": 1,
        "AWS::Route53::HostedZone": 1,
        "AWS::EC2::VPC": 1,
    },
    instances=(InstanceCount("t3.medium", 3, False), InstanceCount("t3.medium", 2, True, max_count=10)),
    gib_by_volume_type={"gp3": 100},
    max_gib_by_volume_type={"gp3": 200},
    public_addresses=4,
    max_public_addresses=9,
    endpoint_interfaces=3,
)


def test_each_item_has_its_price() -> None:
    bill = monthly_bill(Demand(), EVERYTHING, PRICES)
    planned = {cost.item: cost.planned for cost in bill.costs}
    assert planned == {
        "t3.medium": Decimal(12),
        "t3.medium (spot)": Decimal(2),
        "gp3 volumes": Decimal(8),
        "public IPv4": Decimal("2.5"),
        "PrivateLink": Decimal(3),
        "Elastic Load Balancing": Decimal(2),
        "NAT": Decimal(10),
        "Secrets Manager": Decimal("0.8"),
        "KMS": Decimal(1),
        "Route 53": Decimal("0.5"),
    }
    assert bill.planned == sum(cost.planned for cost in bill.costs if cost.planned)
    assert (bill.current, bill.difference, bill.unpriced) == (0, bill.planned, ())


def test_the_maximum_counts_groups_at_their_maximum_size() -> None:
    bill = monthly_bill(Demand(), EVERYTHING, PRICES)
    added = 8 * Decimal(1) + 100 * Decimal("0.08") + 5 * Decimal("0.5")
    assert bill.maximum - bill.planned == added


def test_an_update_is_compared_with_what_is_there() -> None:
    now = Demand(instances=(InstanceCount("t3.medium", 5, False),))
    then = Demand(instances=(InstanceCount("t3.medium", 2, False),), gib_by_volume_type={"gp3": 50})
    bill = monthly_bill(now, then, PRICES)
    assert (bill.current, bill.planned, bill.difference) == (20, 12, -8)


def test_what_has_no_price_is_named_and_in_no_total() -> None:
    planned = Demand(
        instances=(InstanceCount("g5.xlarge", 1, True), InstanceCount("t3.medium", 1, False)),
        gib_by_volume_type={"io2": 10},
    )
    bill = monthly_bill(Demand(), planned, PRICES)
    assert bill.planned == 4
    assert {cost.price_key for cost in bill.unpriced} == {"spot.g5.xlarge", "volumes.io2"}
    assert MonthlyCost("g5.xlarge (spot)", 1, "instance", None, None, None, "spot.g5.xlarge") in bill.costs


def test_what_has_no_price_is_named_as_the_price_list_names_it() -> None:
    bill = monthly_bill(Demand(), EVERYTHING, PriceList(currency="USD", date=date(2026, 11, 1), region="us-west-2"))
    keys = {cost.price_key.partition(".")[0] for cost in bill.unpriced}
    assert len(keys) == 10
    assert keys <= {field.alias for field in PriceList.model_fields.values()}


def test_amounts_are_rounded_to_cents_like_a_bill() -> None:
    prices = PRICES.model_copy(update={"on_demand": {"t3.medium": Decimal("0.00005")}})
    bill = monthly_bill(Demand(), Demand(instances=(InstanceCount("t3.medium", 1, False),)), prices)
    assert str(bill.planned) == "0.01"


def test_of_several_types_the_first_one_has_the_price() -> None:
    types = ("t3.medium", "t3a.medium")
    instances = (InstanceCount(types[0], 2, False, 4, types[1:]), InstanceCount(types[0], 1, True, 4, types[1:]))
    bill = monthly_bill(Demand(), Demand(instances=(*instances, InstanceCount("t3.medium", 1, False))), PRICES)
    assert {cost.item: (cost.planned, cost.price_key) for cost in bill.costs} == {
        "t3.medium": (Decimal(4), "onDemand.t3.medium"),
        "t3.medium, the first of 2 types": (Decimal(8), "onDemand.t3.medium"),
        "t3.medium, the first of 2 types (spot)": (Decimal(1), "spot.t3.medium"),
    }


def test_types_that_aws_chooses_have_no_price_and_are_named() -> None:
    instances = InstanceCount("", 2, False, 4, least_vcpus=4)
    bill = monthly_bill(Demand(), Demand(instances=(instances,)), PRICES)
    assert [(cost.item, cost.planned, cost.price_key) for cost in bill.unpriced] == [
        ("types with 4 or more vCPUs", None, "")
    ]
    note = next(line for line in bill_lines(bill, 200, is_new=True) if "The price list has no price" in line)
    assert "The price list has no price for types with 4 or more vCPUs; the totals leave these out." in note
