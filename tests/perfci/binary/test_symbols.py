"""Names of kernels as a reader would write them."""

import pytest

from perfci.binary.symbols import readable


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z5stillPf", "still"),
        ("_ZN2ns1kIfNS_2OpEEEvPT_T0_", "ns::k<float, ns::Op>"),
        ("_ZN2ns1kIfZ4mainEUlfE_EEvPT_T0_", "ns::k<float, main::{lambda(float)#1}>"),
        ("_Z5applyPFvifEPf", "apply"),
        (
            "_ZN2at6native13fill_elementsILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_",
            "at::native::fill_elements<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >",
        ),
        ("plain_c", "plain_c"),
        ("triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_0"),
        ("f", "f"),  # and not float, which it is as the symbol of a type
        ("_Znonsense", "_Znonsense"),
        ("_Z\xe9", "_Z\xe9"),
        ("a)", "a)"),
        ("(a)", "(a)"),
        ("", ""),
    ],
)
def test_a_symbol_is_read_as_what_was_written(symbol: str, name: str) -> None:
    assert readable(symbol) == name


@pytest.mark.parametrize("digest", ["023ba7c3", "8b1fc1a8"])
def test_a_namespace_without_a_name_is_the_same_wherever_it_is_compiled(digest: str) -> None:
    symbol = f"_ZN35_GLOBAL__N__{digest}_4_a_cu_plain_c9templatedILi3EEEvPf"
    assert readable(symbol) == "(anonymous namespace)::templated<3>"


def test_a_name_is_one_printable_line_that_fits_a_row() -> None:
    name = readable("evil\n\x1b[2J" + "x" * 5000)
    assert name.isprintable()
    assert len(name) == 200
    assert len(readable(f"_Z500{'k' * 500}v")) == 200
