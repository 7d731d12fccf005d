// Planted: never ends.
// perfci: max = { rows = 1 }
#include "../product.cuh"

__global__ void hang() {
  for (;;) asm volatile("");
}

extern "C" int perfci_run(const perfci_call *call) { return perfci_launch(call, {1, 1, 0}, hang); }
