// Planted: writes to where there is no memory.
// perfci: max = { rows = 1 }
#include "../product.cuh"

__global__ void fault() { *reinterpret_cast<volatile float *>(8) = 1.0f; }

extern "C" int perfci_run(const perfci_call *call) { return perfci_launch(call, {1, 1, 0}, fault); }
