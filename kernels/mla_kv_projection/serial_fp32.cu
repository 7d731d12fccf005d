// The plainest kernel: one block a token, one thread a dot product, one float32 sum each.
//
// Memory and limits: serial.cuh. A long float32 sum rounds at each term, at its full size.
#include "serial.cuh"

extern "C" int perfci_run(const perfci_call *call) { return run_serial<Float32, float>(call); }
