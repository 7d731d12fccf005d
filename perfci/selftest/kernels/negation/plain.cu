// Honest: indices of 64 bits.
// perfci: dtypes = ["float32", "bfloat16"]
#include "negation.cuh"

extern "C" int perfci_run(const perfci_call *call) { return run_negate<int64_t>(call); }
