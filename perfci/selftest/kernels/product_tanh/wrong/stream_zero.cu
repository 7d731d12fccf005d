// Planted: launches on stream 0 and not on the one that it is given.
#include "../product.cuh"

extern "C" int perfci_run(const perfci_call *call) {
  perfci_call other = *call;
  other.stream = nullptr;
  return launch(&other, read(call));
}
