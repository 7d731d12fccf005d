import shlex

from perfci.dashboard.views.run import reproduction


def test_the_command_that_measures_a_row_again_is_safe_in_a_shell(make) -> None:
    evil = "a b'; $(reboot) `x` && <c>"
    cell = make.cell(evil, kernel=evil, case=evil)
    words = shlex.split(reproduction(make.commit(0, sha=evil), cell))
    assert words == [
        "git",
        "switch",
        "--detach",
        evil,
        "&&",
        "perfci",
        "run",
        "--kernel",
        evil,
        "--variant",
        evil,
        "--case",
        evil,
    ]
