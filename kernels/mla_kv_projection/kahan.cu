// serial_fp32 with compensated sums: what an addition rounds off is added to the next term.
//
// Memory and limits: serial.cuh. Each product is still rounded once. The intrinsics keep fast math
// and contraction from cancelling the compensation.
#include "serial.cuh"

struct Compensated {
  float sum = 0.0f, rest = 0.0f;
  __device__ void add(float a, float b) {
    const float term = __fmaf_rn(a, b, rest);
    const float total = __fadd_rn(sum, term);
    rest = __fsub_rn(term, __fsub_rn(total, sum));
    sum = total;
  }
  __device__ float value() const { return sum; }
};

extern "C" int perfci_run(const perfci_call *call) { return run_serial<Compensated, float>(call); }
