// Planted: sums by atomics, so that the last bits vary; it does not say so.
#include "../atomics.cuh"

extern "C" int perfci_run(const perfci_call *call) { return multiply_by_atomics(call); }
