// Planted: never ends.
// perfci: max = { rows = 1 }
#include "../product.h"

extern "C" int perfci_run(const perfci_call *) {
  for (;;) asm volatile("");
}
