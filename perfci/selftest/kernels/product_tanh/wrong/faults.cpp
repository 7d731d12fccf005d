// Planted: writes to where there is no memory.
// perfci: max = { rows = 1 }
#include "../product.h"

extern "C" int perfci_run(const perfci_call *) {
  *reinterpret_cast<volatile float *>(8) = 1.0f;
  return 0;
}
