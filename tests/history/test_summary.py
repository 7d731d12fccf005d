from records import measurement, run

from perfci.history.latency import latency_of
from perfci.history.model import Pass, Status
from perfci.history.summary import cell, run_summary, summarise


def test_a_measurements_latency_is_by_its_passes_that_are_not_in_quarantine():
    passes = (
        Pass(index=0, samples_ns=(4.0, 1.0, 2.0, 100.0)),
        Pass(index=1, samples_ns=(3.0,)),
        Pass(index=2, samples_ns=(9.0,), quarantine="the SM clock was low"),
    )
    latency = summarise(passes)
    assert latency == latency_of((3.0, 3.0), sample_count=5)
    assert all(type(each) is float for each in latency.pass_means_ns)


def test_cell_has_a_latency_only_where_there_are_samples():
    passed = measurement((5.0,))
    assert cell("r1", passed).latency == summarise(passed.passes)
    failed = cell("r1", measurement(case="b", status=Status.TIMEOUT))
    assert (failed.run_id, failed.case, failed.latency) == ("r1", "b", None)


def test_run_summary_counts_statuses_in_their_own_order():
    statuses = [Status.TIMEOUT, Status.SKIPPED, Status.BUILD_FAILED, Status.TIMEOUT]
    cells = [measurement(case=f"c{n}", status=each) for n, each in enumerate(statuses)]
    anchor = measurement(kernel="perfci_copy", status=Status.TIMEOUT)
    recorded = run(*cells, anchor, run_id="r1")
    summary = run_summary(recorded)
    assert summary.status_counts == (
        (Status.BUILD_FAILED, 1),
        (Status.TIMEOUT, 2),
        (Status.SKIPPED, 1),
    )
    assert (summary.run_id, summary.commit, summary.trigger) == ("r1", recorded.commit, "local")
