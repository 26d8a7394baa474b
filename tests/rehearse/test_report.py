"""The report's files: both, whole, or none; and a place for them is made sure of before anything is made in AWS."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from cfngen.rehearse.comparison import Surprise
from cfngen.rehearse.operations import Operation, OperationEvent
from cfngen.rehearse.report import (
    Rehearsal,
    RehearsedOperation,
    RehearsedStep,
    ReportError,
    markdown_page,
    require_writable,
    write_report,
)

OPERATION = Operation(
    "create",
    "ROLLBACK_COMPLETE",
    90.0,
    (OperationEvent("VpcStack/Vpc", "AWS::EC2::VPC", "CREATE_FAILED", "a | b", 4.0),),
)
REHEARSAL = Rehearsal(
    version="1.0",
    boto3="1.40",
    began=datetime.datetime(2026, 11, 22, 14, 0, tzinfo=datetime.UTC),
    region="us-west-2",
    partition="aws",
    default_vpc=False,
    result="surprise",
    steps=(
        RehearsedStep(
            1,
            "program",
            "an instance",
            "surprise",
            (RehearsedOperation(OPERATION, (Surprise("event", "VpcStack/Vpc", "x", "y"),), ("slow",)),),
            "1 surprise",
        ),
        RehearsedStep(2, "roll", "another", "not reached"),
    ),
    left=("snapshot <snap-1>: denied",),
)


def test_the_page_says_what_differed_and_shows_the_events() -> None:
    text = markdown_page(REHEARSAL)
    assert "Result: **surprise**. Region us-west-2 (aws), without a default VPC." in text
    assert "- **surprise**: VpcStack/Vpc: expected x; seen y\n- remark: slow" in text
    assert "| 4 | VpcStack/Vpc | CREATE_FAILED | a \\| b |" in text
    assert "| 2. another | not reached | 0 |" in text
    assert text.endswith("## Left behind\n\n- snapshot <snap-1>: denied\n")


def test_both_files_are_written_beside_each_other(tmp_path: Path) -> None:
    file = tmp_path / "rehearsal-2026-11-22.json"
    file.write_text("old")
    require_writable(file)
    assert write_report(file, "{}\n", "# page\n") == (file, tmp_path / "rehearsal-2026-11-22.md")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {
        "rehearsal-2026-11-22.json": "{}\n",
        "rehearsal-2026-11-22.md": "# page\n",
    }


@pytest.mark.parametrize("name", ["missing/report.json", "report.md", "."])
def test_a_report_that_cannot_be_written_is_refused_beforehand(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReportError):
        require_writable(tmp_path / name)


def test_a_report_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.json"
    file.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ReportError, match="No space left"):
        write_report(file, "new", "page")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("report.json", "old")]
