"""What is derived from raw samples: summaries of measurements and of runs. Pure."""

from collections import Counter
from collections.abc import Sequence

from perfci.history.latency import LatencySummary, interquartile_mean, latency_of
from perfci.history.model import (
    Cell,
    Measurement,
    Pass,
    Run,
    RunSummary,
    Status,
    is_anchor,
)


def summarise(passes: Sequence[Pass]) -> LatencySummary:
    """Estimate the latency of one measurement, by its passes that are not in quarantine.

    Raises ValueError where there are no samples.
    """
    good = [each for each in passes if not each.quarantine]
    return latency_of(
        [interquartile_mean(each.samples_ns) for each in good],
        sample_count=sum(len(each.samples_ns) for each in good),
    )


def cell(run_id: str, measurement: Measurement) -> Cell:
    """The measurement as pages and comparisons read it; no latency where it has no samples."""
    return Cell(
        run_id=run_id,
        kernel=measurement.kernel,
        case=measurement.case,
        variant=measurement.variant,
        contract=measurement.contract,
        status=measurement.status,
        message=measurement.message,
        latency=summarise(measurement.passes) if measurement.passes else None,
        metrics=measurement.metrics,
        workload_digest=measurement.workload_digest,
        source_digest=measurement.source_digest,
        identity=measurement.identity,
        launches=measurement.launches,
        stop=measurement.stop,
    )


def run_summary(run: Run) -> RunSummary:
    """The run without its measurements, which are counted by status in the order of Status."""
    counts = Counter(each.status for each in run.measurements if not is_anchor(each.kernel))
    return RunSummary(
        run_id=run.run_id,
        commit=run.commit,
        environment=run.environment,
        started_at=run.started_at,
        duration_s=run.duration_s,
        trigger=run.trigger,
        attempt=run.attempt,
        perfci_version=run.perfci_version,
        status_counts=tuple((each, counts[each]) for each in Status if each in counts),
        pair=run.pair,
    )
