"""What a variant says of itself, and what is said of each mistake in it."""

from pathlib import Path

import pytest

from perfci.declaration import Declaration, Tolerance, declared_in_source, declared_in_table
from perfci.errors import ConfigurationError


def _declared(folder: Path, text: str, name: str = "plain.cpp") -> Declaration:
    path = folder / name
    path.write_text(text)
    return declared_in_source(path)


def test_nothing_need_be_declared(tmp_path: Path) -> None:
    assert _declared(tmp_path, "int x;\n") == Declaration(devices=("cpu",))
    assert _declared(tmp_path, "", "plain.cu") == Declaration(devices=("cuda",))
    assert _declared(tmp_path, "", "plain.py") == Declaration(devices=("cpu", "cuda"))


def test_everything_may_be_declared(tmp_path: Path) -> None:
    text = (
        "/* What it is.\n"
        ' * perfci: flags = ["-fopenmp"]\n'
        " */\n"
        "\n"
        '// perfci: libraries = ["m"]\n'
        '// perfci: devices = ["cpu", "cuda"]\n'
        '// perfci: dtypes = ["float16", "bfloat16"]\n'
        "// perfci: max = { width = 4096, rate = 0.5 }\n"
        '// perfci: architecture = "sm_90a"\n'
        "/* perfci: compiles = true */\n"
        "//perfci:peer = true\n"
        "// perfci: tolerance = { max_ratio = 2.0 }\n"
        "#include <perfci.h>\n"
        '// perfci: flags = ["too late"]\n'
    )
    assert _declared(tmp_path, text) == Declaration(
        devices=("cpu", "cuda"),
        dtypes=("float16", "bfloat16"),
        flags=("-fopenmp",),
        libraries=("m",),
        maxima=(("width", 4096), ("rate", 0.5)),
        architecture="sm_90a",
        compiles=True,
        peer=True,
        tolerance=Tolerance(max_ratio=2.0),
    )


def test_a_python_file_declares_in_its_comments(tmp_path: Path) -> None:
    text = '# perfci: dtypes = ["float64"]\n"""Doc."""\n# perfci: compiles = true\nimport torch\n'
    declared = _declared(tmp_path, text, "plain.py")
    assert (declared.dtypes, declared.compiles) == (("float64",), True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("flags", "its 'perfci:' lines are not valid TOML: "),
        ("peer = true\n// perfci: peer = true", "Cannot overwrite a value"),
        ("flag = []", "unknown key 'flag' (did you mean 'flags'?)"),
        ('flags = "-O2"', "flags must be a list of strings"),
        ("libraries = [1]", "libraries must be a list of strings"),
        ('devices = ["gpu"]', "devices: unknown 'gpu' (known: cpu, cuda)"),
        ('dtypes = ["fp32"]', "dtypes: unknown 'fp32'"),
        ("dtypes = []", "dtypes is empty; leave it out or name at least one"),
        ("devices = []", "devices is empty; leave it out or name at least one"),
        ("tolerance = 5", "tolerance must be a table, as in { rms_ratio = 2.0 }"),
        ("tolerance = { rms = 1 }", "tolerance: unknown key 'rms' (known: max_ratio, rms_ratio)"),
        ("tolerance = { rms_ratio = 3.5 }", "rms_ratio = 3.5 must lie in 0–3: a tighter bound"),
        ("tolerance = { max_ratio = nan }", "max_ratio = nan must lie in 0–4"),
        ("tolerance = { max_ratio = true }", "max_ratio = True must lie in 0–4"),
        ("max = 5", "max must be a table of numbers, as in { width = 4096 }"),
        ('max = { width = "5" }', "max must be a table of numbers"),
        ("max = { width = true }", "max must be a table of numbers"),
        ("architecture = 90", 'architecture must be a string such as "sm_90a"'),
        ('architecture = "hopper"', 'architecture must be a string such as "sm_90a"'),
        ("compiles = 1", "compiles must be true or false"),
        ('peer = "yes"', "peer must be true or false"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        _declared(tmp_path, f"// perfci: {line}\n")
    assert str(raised.value).startswith(f"{tmp_path}/plain.cpp: ")
    assert message in str(raised.value)


def test_a_source_need_not_be_text(tmp_path: Path) -> None:
    (tmp_path / "plain.cpp").write_bytes(b"// \xff\xfe\n// perfci: peer = true\n\x00\n")
    assert declared_in_source(tmp_path / "plain.cpp").peer


def test_a_table_names_a_function(tmp_path: Path) -> None:
    function, declared = declared_in_table({"function": "a.b:c", "peer": True}, "here")
    assert (function, declared) == ("a.b:c", Declaration(devices=("cpu", "cuda"), peer=True))
