// Planted: threads race for the terms of a sum, so that its last bits vary; it does not say so.
#include "../unordered.h"

extern "C" int perfci_run(const perfci_call *call) { return multiply_unordered(call); }
