// Planted: writes one element behind its output.
#include "../product.h"

extern "C" int perfci_run(const perfci_call *call) {
  multiply(call);
  const Product p = read(call);
  p.out[p.rows * p.columns] = 1.0f;
  return 0;
}
