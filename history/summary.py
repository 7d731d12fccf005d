"""What is derived from raw samples: summaries of measurements and of runs. Pure."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from perfci.history.model import (
    Cell,
    LatencySummary,
    Measurement,
    Pass,
    Run,
    RunSummary,
    Status,
    is_anchor,
)


def interquartile_mean(samples_ns: Sequence[float]) -> float:
    """The mean of the middle half of the samples, in nanoseconds.

    A quarter of the samples is trimmed at each end. Where a quarter is no whole number, the sample
    that it cuts counts by the fraction that is left, so one sample is its own mean.

    Raises ValueError where there are no samples.
    """
    count = len(samples_ns)
    if count == 0:
        raise ValueError("an interquartile mean needs at least one sample")
    edges = np.arange(count + 1).clip(count / 4, 3 * count / 4)
    return math.fsum(np.diff(edges) * np.sort(samples_ns)) / (count / 2)


def summarise(passes: Sequence[Pass]) -> LatencySummary:
    """Summarise the passes of one measurement that are not in quarantine, in nanoseconds.

    Raises ValueError where there are no samples.
    """
    passes = [each for each in passes if not each.quarantine]
    samples_ns = np.concatenate([each.samples_ns for each in passes])
    lower, median, upper = np.quantile(samples_ns, (0.25, 0.5, 0.75))
    return LatencySummary(
        median_ns=float(median),
        lower_quartile_ns=float(lower),
        upper_quartile_ns=float(upper),
        minimum_ns=float(samples_ns.min()),
        sample_count=samples_ns.size,
        pass_means_ns=tuple(interquartile_mean(each.samples_ns) for each in passes),
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
