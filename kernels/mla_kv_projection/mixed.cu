// serial_fp32 with float64 sums: the products are exact, and only the latent and the output round.
//
// Memory and limits: serial.cuh; shared memory stays float32.
#include "serial.cuh"

struct Float64 {
  double sum = 0.0;
  __device__ void add(float a, float b) { sum += double(a) * double(b); }
  __device__ double value() const { return sum; }
};

extern "C" int perfci_run(const perfci_call *call) { return run_serial<Float64, float>(call); }
