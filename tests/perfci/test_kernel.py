"""A kernel's folder: what is read from it, and what is said of each mistake in it."""

from pathlib import Path

import pytest
import scratch

from perfci.errors import ConfigurationError
from perfci.kernel import Case, Kernel, Tolerance, discover, skip_reason

_REST = '[[bench]]\nname = "rest"\ncount = 1\n'


def _only(root: Path) -> Kernel:
    (kernel,) = discover(root / "kernels")
    return kernel


def test_a_folder_is_a_kernel(tmp_path: Path) -> None:
    folder = scratch.write_kernel(
        tmp_path,
        plain__cpp=scratch.PLAIN,
        eager__py=scratch.EAGER,
        wrong_zeros__py=scratch.EAGER,
        notes__md="not a variant",
        variants__toml='[library]\nfunction = "math:fsum"\n',
    )
    (folder.parent / "include").mkdir()
    (folder.parent / "include/shared.h").write_text("")
    kernel = _only(tmp_path)
    assert kernel.name == "axpb"
    assert [(each.name, each.kind, each.declaration.devices) for each in kernel.variants] == [
        ("eager", "python", ("cpu", "cuda")),
        ("plain", "c", ("cpu",)),
        ("library", "function", ("cpu", "cuda")),
    ]
    assert [each.name for each in kernel.controls] == ["zeros"]
    assert kernel.cases[0] == Case(
        name="large", timed=True, tier="smoke", arguments=(("count", 65536),)
    )
    assert [(case.name, case.timed) for case in kernel.cases[1:]] == [
        ("one", False),
        ("odd", False),
    ]


def test_a_source_with_a_python_module_is_an_extension(tmp_path: Path) -> None:
    source = "#include <torch/extension.h>\n  PYBIND11_MODULE (TORCH_EXTENSION_NAME, m) {}\n"
    scratch.write_kernel(tmp_path, one__cpp=source, two__cu="// PYBIND11_MODULE(x, m)\n")
    assert [(each.name, each.kind) for each in _only(tmp_path).variants] == [
        ("one", "extension"),
        ("two", "c"),
    ]


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ("bench = [", "cases.toml: not valid TOML: "),
        ("", "no [[bench]] or [[check]] table; write at least one"),
        ("[[banch]]\n", "unknown key 'banch' (did you mean 'bench'?)"),
        ("[bench]\ncount = 1\n", "bench must be an array of tables: write [[bench]]"),
        ("bench = 5\n", "bench must be an array of tables: write [[bench]]"),
        ("check = [1]\n", "check must be an array of tables: write [[check]]"),
        ("[[bench]]\ncount = 1\n", '[[bench]]: a case without a name; add name = "…"'),
        ("[[bench]]\nname = 1\ncount = 1\n", '[[bench]]: a case without a name; add name = "…"'),
        ('[[bench]]\nname = "A b"\ncount = 1\n', "bad name 'A b'; use a-z, 0-9 and underscores"),
        ('[[check]]\nname = "one"\n', "[[check]] 'one': key 'count' is missing"),
        ('[[check]]\nname = "one"\ncuont = 1\n', "unknown key 'cuont' (did you mean 'count'?)"),
        ('[[check]]\nname = "one"\ncount = [1]\n', "count must be a number, a string or a boolean"),
        (_REST + _REST, "two cases are named 'rest'; rename one"),
        (_REST + 'tier = "slow"\n', "tier = 'slow' is not one of smoke, full"),
        (_REST + 'dtype = "fp32"\n', "dtype = 'fp32' is not one of float32, float64"),
        (_REST + 'distribution = "even"\n', "distribution = 'even' is not one of normal, large"),
        (_REST + "layout = []\n", "layout = [] is not one of contiguous, strided, offset"),
        (_REST + 'devices = ["gpu"]\n', "'rest': devices: unknown 'gpu' (known: cpu, cuda)"),
        (_REST + 'devices = "cpu"\n', "'rest': devices must be a list of strings"),
        (_REST + "devices = 5\n", "'rest': devices must be a list of strings"),
        (_REST + "tolerance = 5\n", "unknown key 'tolerance'"),
        ("tolerance = 5\n" + _REST, "tolerance must be a table: write [tolerance.float32]"),
        (_REST + "[tolerance]\nmax_ratio = 1\n", "unknown key 'max_ratio'"),
        (_REST + "[tolerance]\nfloat32 = 1\n", "[tolerance.float32] must be a table"),
        (
            _REST + "[tolerance.float23]\nmax_ratio = 1\n",
            "'float23' (did you mean 'float32', 'float64' or",
        ),
        (_REST + "[tolerance.float32]\nmax = 1\n", "unknown key 'max' (known: max_ratio"),
        (_REST + "[tolerance.float32]\nmax_ratio = 4.5\n", "max_ratio = 4.5 must lie in 0–4"),
        (_REST + "[tolerance.float32]\nrms_ratio = 3.5\n", "rms_ratio = 3.5 must lie in 0–3"),
        (_REST + "[tolerance.float32]\nrms_ratio = 0\n", "rms_ratio = 0 must lie in 0–3"),
        (_REST + "[tolerance.float32]\nrms_ratio = nan\n", "rms_ratio = nan must lie in 0–3"),
        (_REST + '[tolerance.float32]\nrms_ratio = "1"\n', "rms_ratio = '1' must lie in 0–3"),
    ],
)
def test_a_mistake_in_the_cases_is_named(tmp_path: Path, cases: str, message: str) -> None:
    folder = scratch.write_kernel(tmp_path, cases__toml=cases)
    with pytest.raises(ConfigurationError) as raised:
        discover(tmp_path / "kernels")
    assert str(raised.value).startswith(f"{folder}/cases.toml: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value).rstrip()


def test_a_tighter_tolerance_may_be_declared(tmp_path: Path) -> None:
    tighter = "[tolerance.float32]\nrms_ratio = 2\n"
    scratch.write_kernel(tmp_path, cases__toml=_REST + tighter)
    kernel = _only(tmp_path)
    assert kernel.tolerance("float32") == Tolerance(max_ratio=4.0, rms_ratio=2)
    assert kernel.tolerance("bfloat16") == Tolerance()


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("def make_inputs(\n", "reference.py: does not parse: "),
        ("x = 1\n", "reference.py: has no function 'make_inputs'; a kernel needs it"),
        (scratch.REFERENCE.replace("def flops", "def flop"), "has no function 'flops'"),
        (scratch.REFERENCE.replace("def reference", "reference = lambda"), "does not parse"),
    ],
)
def test_a_mistake_in_the_reference_is_named(tmp_path: Path, reference: str, message: str) -> None:
    folder = scratch.write_kernel(tmp_path, reference__py=reference)
    with pytest.raises(ConfigurationError) as raised:
        discover(tmp_path / "kernels")
    assert str(raised.value).startswith(f"{folder}/reference.py: ")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"Plain__cpp": ""}, "Plain.cpp: bad name 'Plain'"),
        ({"plain__cpp": "", "wrong_plain__py": ""}, "control 'plain' has the name of a variant"),
        ({"plain__cpp": "", "plain__py": ""}, "plain.py: variant 'plain' stands in plain.cpp"),
        ({"plain__cpp": "// perfci: flags = [\n"}, "plain.cpp: its 'perfci:' lines are not valid"),
        (
            {"plain__py": "", "variants__toml": '[plain]\nfunction = "math:fsum"\n'},
            "variants.toml: variant 'plain' is a file already; rename one",
        ),
        ({"variants__toml": "x = 5\n"}, 'variants.toml: [x]: needs function = "package.module:'),
        ({"variants__toml": '[x]\nfunction = "fsum"\n'}, 'needs function = "package.module:name"'),
        (
            {"variants__toml": '[x]\nfunction = "math:fsum"\nflag = []\n'},
            "variants.toml: [x]: unknown key 'flag' (did you mean 'flags'?)",
        ),
        ({"wrong_no one__py": ""}, "bad name 'no one'"),
    ],
)
def test_a_mistake_in_the_variants_is_named(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    scratch.write_kernel(tmp_path, **files)
    with pytest.raises(ConfigurationError) as raised:
        discover(tmp_path / "kernels")
    assert message in str(raised.value)


def test_a_folder_that_lacks_a_file_is_named(tmp_path: Path) -> None:
    folder = scratch.write_kernel(tmp_path)
    (folder / "cases.toml").unlink()
    with pytest.raises(ConfigurationError, match=r"cases.toml: no such file; a kernel needs one"):
        discover(tmp_path / "kernels")
    (folder / "cases.toml").write_text(scratch.CASES)
    (folder / "reference.py").unlink()
    with pytest.raises(ConfigurationError, match=r"reference.py: no such file; a kernel needs one"):
        discover(tmp_path / "kernels")
    with pytest.raises(ConfigurationError, match=r"nowhere: no such folder; name the folder of"):
        discover(tmp_path / "nowhere")


def test_the_names_of_anchors_are_taken(tmp_path: Path) -> None:
    scratch.write_kernel(tmp_path, "perfci_copy")
    with pytest.raises(ConfigurationError, match="begin with perfci_ are perfci's own; rename"):
        discover(tmp_path / "kernels")


def test_variants_of_one_folder_are_judged_by_the_workload_of_another(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    scratch.write_kernel(old, first__cpp=scratch.PLAIN)
    scratch.write_kernel(old, "gone")
    scratch.write_kernel(new, second__cpp=scratch.PLAIN, cases__toml=_REST)
    (kernel,) = discover(old / "kernels", workloads=new / "kernels")
    assert [each.name for each in kernel.variants] == ["first"]
    assert [each.name for each in kernel.cases] == ["rest"]


def test_the_workload_is_the_reference_and_the_arguments(tmp_path: Path) -> None:
    scratch.write_kernel(tmp_path)
    kernel = _only(tmp_path)
    digests = [kernel.workload_digest(case) for case in kernel.cases]
    assert len(set(digests)) == 3
    renamed = scratch.CASES.replace("large", "vast").replace('tier = "smoke"', 'tier = "full"')
    scratch.write_kernel(tmp_path, cases__toml=renamed)
    again = _only(tmp_path)
    assert [again.workload_digest(case) for case in again.cases] == digests
    scratch.write_kernel(tmp_path, reference__py=scratch.REFERENCE + "# more\n")
    changed = _only(tmp_path)
    assert not {changed.workload_digest(case) for case in changed.cases} & set(digests)


def test_what_is_declared_impossible_is_skipped_with_its_reason(tmp_path: Path) -> None:
    source = '# perfci: devices = ["cuda"]\n# perfci: max = { count = 7 }\n'
    scratch.write_kernel(tmp_path, plain__py=source, cases__toml=_REST)
    kernel = _only(tmp_path)
    (variant,), (case,) = kernel.variants, kernel.cases
    half = Case(name="half", timed=True, dtype="float16", arguments=(("count", 7),))
    many = Case(name="many", timed=True, arguments=(("count", 8),))
    assert skip_reason(variant, case, "cpu") == "declared for cuda only"
    assert skip_reason(variant, case, "cuda") == ""
    assert skip_reason(variant, half, "cuda") == "declared for float32 only"
    assert skip_reason(variant, many, "cuda") == "count = 8 is above the declared maximum 7"


def test_a_case_that_needs_more_memory_than_the_device_has_is_skipped(tmp_path: Path) -> None:
    huge = '[[check]]\nname = "huge"\ncount = 7\nmemory_gib = 1.5\n'
    scratch.write_kernel(tmp_path, cases__toml=huge)
    kernel = _only(tmp_path)
    (variant,), (case,) = kernel.variants, kernel.cases
    assert dict(case.arguments) == {"count": 7}

    def reason(memory_bytes: int | None) -> str:
        return skip_reason(variant, case, "cpu", device_memory_bytes=memory_bytes)

    assert reason(2**30) == "the case needs 1.5 GiB of memory, this device has 1.00 GiB"
    assert reason(3 * 2**29) == ""
    assert reason(None) == ""


@pytest.mark.parametrize("value", ['"much"', "true", "-1", "nan"])
def test_memory_is_a_number(value: str, tmp_path: Path) -> None:
    case = f'[[check]]\nname = "huge"\ncount = 7\nmemory_gib = {value}\n'
    scratch.write_kernel(tmp_path, cases__toml=case)
    with pytest.raises(ConfigurationError, match=r"memory_gib = .* must be a number, 0 or more"):
        discover(tmp_path / "kernels")
