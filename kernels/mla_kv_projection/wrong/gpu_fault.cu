// perfci: faults = true
// Wrong: writes to an address that nobody has allocated.
#include "../projection.cuh"

__global__ void fault(volatile float *nowhere) { *nowhere = 0.0f; }

extern "C" int perfci_run(const perfci_call *call) {
  return perfci_launch(call, {1, 1, 0}, fault, reinterpret_cast<volatile float *>(16));
}
