// Honest: differs in its last bits from call to call, and says so.
// perfci: nondeterministic = true
#include "unordered.h"

extern "C" int perfci_run(const perfci_call *call) { return multiply_unordered(call); }
