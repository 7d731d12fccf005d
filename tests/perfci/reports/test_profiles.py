from pathlib import Path

import click

from perfci.reports.columns import WIDTH, measure
from perfci.reports.profiles import profile_table
from perfci.tools.profiler import Profile, ProfiledLaunch

_LONG = ProfiledLaunch(
    function="vectorized_elementwise_kernel_of_a_library",
    duration_ns=3712.0,
    dram_share=0.1234,
    l2_share=0.0052,
    sm_share=1.0,
    occupancy_share=0.248,
    registers=255,
    stall="long scoreboard",
    stall_share=0.625,
)


def _profile(variant: str, *launches: ProfiledLaunch, message: str = "") -> Profile:
    report = None if message else f"{variant}.ncu-rep"
    return Profile(
        kernel="rope",
        variant=variant,
        case="headline",
        report=report,
        launches=launches,
        message=message,
    )


def test_each_launch_is_a_line_below_its_variant() -> None:
    lines = profile_table(
        [
            _profile("torch_eager", _LONG, ProfiledLaunch(function="copy")),
            _profile("tiled", _LONG),
            _profile("broken", message="rope.cu(3): error: no\nand more"),
        ],
        Path(".perfci/profiles/r1"),
    )
    assert all(measure(line) <= WIDTH for line in lines)
    assert click.unstyle("\n".join(lines)) == (
        """\
rope · headline
  variant, launches        time  DRAM     L2     SM  occ.  regs  waits for
  torch_eager
  └ vectoriz…a_library  3.71 µs  12 %  0.5 %  100 %  25 %   255  long scoreboard
  └ copy                      –     –      –      –     –     –  –
  tiled
  └ vectoriz…a_library  3.71 µs  12 %  0.5 %  100 %  25 %   255  long scoreboard

✗ no profile · rope/broken/headline
    rope.cu(3): error: no

reports: 2 in .perfci/profiles/r1"""
    )
