// Planted: indices of 32 bits, so that beyond 2^31 elements nothing is written.
// perfci: dtypes = ["float32", "bfloat16"]
#include "../negation.cuh"

extern "C" int perfci_run(const perfci_call *call) { return run_negate<int32_t>(call); }
