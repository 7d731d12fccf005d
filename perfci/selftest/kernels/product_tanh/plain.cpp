// Honest: nothing but the product.
#include "product.h"

extern "C" int perfci_run(const perfci_call *call) { return multiply(call); }
