// Planted: writes nothing.
#include "../product.h"

extern "C" int perfci_run(const perfci_call *) { return 0; }
