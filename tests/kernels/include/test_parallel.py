"""The thread pool of the C++ variants, driven by a small C++ program of its own."""

import os
import subprocess
from pathlib import Path

import pytest

INCLUDE = Path(__file__).parents[3] / "kernels" / "include"

PROGRAM = r"""
#include "parallel.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

// Each task counted once, on no more threads than allowed; false where not.
static bool covers(int64_t tasks, int64_t threads) {
  std::vector<std::atomic<int>> runs(tasks);
  std::atomic<int> inside{0}, most{0};
  parallel_for(tasks, threads, [&](int64_t task) {
    const int now = ++inside;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {}
    ++runs[task];
    --inside;
  });
  for (std::atomic<int> &count : runs)
    if (count != 1) return false;
  return most <= std::max<int64_t>(1, threads);
}

static bool all_covered() {
  for (int64_t tasks : {0, 1, 2, 7, 100})
    for (int64_t threads : {0, 1, 2, 3, 8})
      for (int repeat = 0; repeat < 20; ++repeat)
        if (!covers(tasks, threads)) return false;
  return true;
}

static bool callers_side_by_side() {
  std::atomic<bool> right{true};
  std::thread other([&] { if (!all_covered()) right = false; });
  if (!all_covered()) right = false;
  other.join();
  return right;
}

static bool child_of_a_fork() {
  if (!covers(8, 3)) return false;
  const pid_t child = fork();
  if (child == 0) _exit(all_covered() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 && covers(8, 3);
}

int main(int, char **arguments) {
  const char *wanted = arguments[1];
  if (!std::strcmp(wanted, "threads")) return std::printf("%lld", (long long)allowed_threads()) < 0;
  if (!std::strcmp(wanted, "once")) return !all_covered();
  if (!std::strcmp(wanted, "callers")) return !callers_side_by_side();
  if (!std::strcmp(wanted, "fork")) return !child_of_a_fork();
  return 2;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parallel")
    source = folder / "program.cpp"
    source.write_text(PROGRAM, encoding="utf-8")
    flags = ["-std=c++17", "-O1", "-Wall", "-Werror", "-pthread", f"-I{INCLUDE}"]
    subprocess.run(["g++", *flags, source, "-o", folder / "program"], check=True)
    return folder / "program"


@pytest.mark.parametrize("wanted", ["once", "callers", "fork"])
def test_runs_each_task_once(program: Path, wanted: str) -> None:
    """Also with two callers at a time, and in the child of a process that has used threads."""
    assert subprocess.run([program, wanted], check=False, timeout=60).returncode == 0


def _allowed_threads(program: Path, **environment: str) -> int:
    clean = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    return int(
        subprocess.run(
            [program, "threads"],
            check=True,
            capture_output=True,
            text=True,
            env={**clean, **environment},
        ).stdout
    )


def test_counts_the_processors_that_it_may_use(program: Path) -> None:
    allowed = os.sched_getaffinity(0)
    assert _allowed_threads(program) == len(allowed)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert _allowed_threads(program) == 1
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.parametrize(
    ("wanted", "limit"), [("1", 1), ("100000", None), ("0", None), ("all", None), ("-1", None)]
)
def test_takes_a_smaller_number_from_the_environment(
    program: Path, wanted: str, limit: int | None
) -> None:
    expected = limit or len(os.sched_getaffinity(0))
    assert _allowed_threads(program, OMP_NUM_THREADS=wanted) == expected
