"""What takes time takes a share of it at most."""

from perfci.pace import Sparingly


def test_it_is_done_at_once_and_again_when_a_share_of_the_time_has_passed() -> None:
    now_s = 100.0
    done_at_s = []

    def work() -> None:
        nonlocal now_s
        done_at_s.append(now_s)
        now_s += 0.5

    sparingly = Sparingly(work, share=0.01, now_s=lambda: now_s)
    for _ in range(2 * 60):
        sparingly()
        now_s += 1.0
    assert done_at_s == [100.0, 150.5, 201.0]


def test_what_takes_no_time_is_always_done() -> None:
    calls: list[int] = []
    sparingly = Sparingly(lambda: calls.append(0), share=0.01, now_s=lambda: 7.0)
    for _ in range(3):
        sparingly()
    assert len(calls) == 3
