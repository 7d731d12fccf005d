"""What is frozen of the library's errors: the largest over all seeds, counted in allowances."""

from pathlib import Path

import pytest
import scratch
from subjects import build_subject

from perfci.checking.check import draw, find_truth
from perfci.checking.yardstick import measure_yardstick


def test_errors_are_counted_in_what_rounding_allows_and_kept_at_the_worst_seed(
    tmp_path: Path,
) -> None:
    scratch.write_kernel(tmp_path, eager__py=scratch.EAGER)
    _, subject = build_subject(tmp_path)
    seeds = (1, 2, 3)
    truths = [find_truth(subject, draw(subject, seed))[0] for seed in seeds]
    own = [(each.yardstick_errors, each.allowed) for each in truths]
    outcome = measure_yardstick(subject, seeds)
    assert {each.name: each.value for each in outcome.metrics} == {
        "0 largest": pytest.approx(max(off.max_abs / may.largest for off, may in own)),
        "0 rms": pytest.approx(max(off.rms / may.rms for off, may in own)),
        "0 max_abs_error": max(off.max_abs for off, _ in own),
        "0 rms_error": max(off.rms for off, _ in own),
    }
