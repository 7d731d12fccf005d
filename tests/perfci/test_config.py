"""Configuration: who has the last word, and what is said of each mistake."""

from pathlib import Path
from typing import Any

import pytest

from perfci.config import load_config
from perfci.errors import ConfigurationError


def _project(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_flags_go_before_variables_and_these_before_the_file(tmp_path: Path) -> None:
    _project(tmp_path, "[tool.perfci]\npasses = 7\ntimeout_s = 7\ncell_budget_s = 7\n")
    variables = {"PERFCI_PASSES": "8", "PERFCI_TIMEOUT_S": "8.5", "PERFCI_STORE": ""}
    config = load_config(tmp_path, environment=variables, passes=9, store=None)
    assert (config.passes, config.timeout_s, config.cell_budget_s) == (9, 8.5, 7)
    assert config.threshold == 0.05
    assert config.store == f"sqlite:///{tmp_path}/.perfci/history.db"


def test_the_root_is_the_nearest_project_upwards(tmp_path: Path) -> None:
    _project(tmp_path, "[tool.perfci]\nkernels = 'ops'\ncache = '/c'\nstore = 'runs.db'\n")
    inner = _project(tmp_path / "a/b", "[project]\nname = 'no table of ours'\n")
    (tmp_path / "a/.git").mkdir()
    config = load_config(inner, environment={})
    assert config.root == tmp_path
    assert (config.kernels, config.cache) == (tmp_path / "ops", Path("/c"))
    assert config.store == f"sqlite:///{tmp_path}/runs.db"


def test_without_a_table_the_root_is_the_checkout_or_the_folder(tmp_path: Path) -> None:
    inner = tmp_path / "a/b"
    inner.mkdir(parents=True)
    assert load_config(inner, environment={}).root == inner
    (tmp_path / "a/.git").write_text("gitdir: elsewhere")
    assert load_config(inner, environment={}).root == tmp_path / "a"


def test_the_usual_variables_are_heeded(tmp_path: Path) -> None:
    usual = {"CXX": "clang++ -m64", "XDG_CACHE_HOME": "/cache"}
    config = load_config(tmp_path, environment=usual)
    assert (config.cxx, config.cache) == ("clang++ -m64", Path("/cache/perfci"))
    config = load_config(tmp_path, environment={**usual, "PERFCI_CXX": "g++-14"})
    assert config.cxx == "g++-14"
    variables = {"PERFCI_ARCHITECTURES": "sm_80, sm_90a"}
    assert load_config(tmp_path, environment=variables).architectures == ("sm_80", "sm_90a")
    variables = {"PERFCI_ENVIRONMENT": "requirements.txt, more/base.txt"}
    asked = load_config(tmp_path, environment=variables).environment
    assert asked == ("requirements.txt", "more/base.txt")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("passes = ", "pyproject.toml: not valid TOML: "),
        ("pases = 3", "[tool.perfci]: unknown key 'pases' (did you mean 'passes'?)"),
        ("root = '/'", "unknown key 'root'"),
        ("passes = 'three'", "passes = 'three' must be a whole number above 0"),
        ("passes = true", "passes = True must be a whole number above 0"),
        ("passes = 2.5", "passes = 2.5 must be a whole number above 0"),
        ("passes = 0", "passes = 0 must be a whole number above 0"),
        ("timeout_s = -1", "timeout_s = -1 must be above 0 and finite"),
        ("timeout_s = inf", "timeout_s = inf must be above 0 and finite"),
        ("memory_limit_gib = nan", "memory_limit_gib = nan must be above 0 and finite"),
        ("threshold = 5", "threshold = 5 must lie between 0 and 1"),
        ("architectures = 'sm_90'", 'must be a list such as ["sm_80", "sm_90"]'),
        ("architectures = 90", 'must be a list such as ["sm_80", "sm_90"]'),
        ("architectures = ['hopper']", "'hopper' is no architecture, as sm_90 is"),
        ("architectures = [90]", "90 is no architecture, as sm_90 is"),
        ("environment = 5", 'must name files of the project, as "requirements.txt" does'),
        ("environment = ['/etc/passwd']", "must name files of the project"),
        ("environment = '../up.txt'", "must name files of the project"),
        ("kernels = 5", "kernels = 5 must be a string"),
        ("cxx = ['g++']", "cxx = ['g++'] must be a string"),
        ("testbed = ''", "testbed = '' must be letters, digits"),
        ("testbed = '../up'", "testbed = '../up' must be letters, digits"),
        ('testbed = "a\\u001b[31m"', "must be letters, digits"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, line: str, message: str) -> None:
    _project(tmp_path, f"[tool.perfci]\n{line}\n")
    with pytest.raises(ConfigurationError) as raised:
        load_config(tmp_path, environment={})
    assert str(raised.value).startswith(f"{tmp_path}/pyproject.toml: ")
    assert message in str(raised.value)


def test_a_table_that_is_none_is_named(tmp_path: Path) -> None:
    _project(tmp_path, "[tool]\nperfci = 5\n")
    with pytest.raises(ConfigurationError, match=r"tool\.perfci must be a table"):
        load_config(tmp_path, environment={})


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("PERFCI_STOER", "runs.db", "PERFCI_STOER: unknown (did you mean 'PERFCI_STORE'?)"),
        ("PERFCI_STOER", "", "PERFCI_STOER: unknown (did you mean 'PERFCI_STORE'?)"),
        ("PERFCI_ROOT", "/", "PERFCI_ROOT: unknown (known: PERFCI_"),
        ("PERFCI_", "", "PERFCI_: unknown (known: PERFCI_ACCEPTED, "),
        ("PERFCI_PASSES", "many", "PERFCI_PASSES=many: must be a whole number above 0"),
        ("PERFCI_PASSES", "1.5", "PERFCI_PASSES=1.5: must be a whole number above 0"),
        ("PERFCI_PASSES", "0", "PERFCI_PASSES=0: must be a whole number above 0"),
        ("PERFCI_PASSES", "a\nb", "PERFCI_PASSES=a b: must be a whole number above 0"),
        ("PERFCI_TIMEOUT_S", "x", "PERFCI_TIMEOUT_S=x: must be a number"),
        ("PERFCI_TIMEOUT_S", "-1", "PERFCI_TIMEOUT_S=-1: must be above 0 and finite"),
        ("PERFCI_MEMORY_LIMIT_GIB", "nan", "PERFCI_MEMORY_LIMIT_GIB=nan: must be above 0"),
        ("PERFCI_THRESHOLD", "2", "PERFCI_THRESHOLD=2: must lie between 0 and 1"),
        ("PERFCI_ANCHORS", "yes", "PERFCI_ANCHORS=yes: must be true or false"),
        ("PERFCI_ARCHITECTURES", "sm_90,", "PERFCI_ARCHITECTURES=sm_90,: '' is no architecture"),
        ("PERFCI_ENVIRONMENT", "/x", "PERFCI_ENVIRONMENT=/x: must name files of the project"),
        ("PERFCI_TESTBED", "a/b", "PERFCI_TESTBED=a/b: must be letters, digits"),
        ("PERFCI_CI", "x", "PERFCI_CI must be a table: write [tool.perfci.ci]"),
        ("PERFCI_THRESHOLDS", "1", "PERFCI_THRESHOLDS must be a table such as"),
        ("PERFCI_ACCEPTED", "x", "PERFCI_ACCEPTED must be tables: write [[tool.perfci.accepted]]"),
    ],
)
def test_a_mistake_in_a_variable_is_named(
    tmp_path: Path, variable: str, text: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        load_config(tmp_path, environment={variable: text})
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("store", "url"),
    [
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
        ("postgresql://host/runs", "postgresql://host/runs"),
        ("/a/b.db", "sqlite:////a/b.db"),
    ],
)
def test_a_store_is_a_path_or_a_url(tmp_path: Path, store: Any, url: str) -> None:
    assert load_config(tmp_path, environment={}, store=store).store == url


def test_a_relative_path_of_a_flag_is_the_callers_and_of_the_file_the_roots(tmp_path: Path) -> None:
    _project(tmp_path, "[tool.perfci]\nstore = 'sqlite:///runs.db'\nkernels = 'ops'\n")
    inside = tmp_path / "ops" / "rope"
    inside.mkdir(parents=True)
    config = load_config(inside, environment={"PERFCI_CACHE": "caches"})
    assert config.store == f"sqlite:///{tmp_path}/runs.db"
    assert (config.kernels, config.cache) == (tmp_path / "ops", tmp_path / "caches")
    config = load_config(inside, environment={}, store="../runs.db", kernels="..")
    assert (config.store, config.kernels) == (f"sqlite:///{tmp_path}/ops/runs.db", tmp_path / "ops")
