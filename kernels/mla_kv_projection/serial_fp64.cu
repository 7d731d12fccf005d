// serial_fp32 with shared memory and sums in float64: rounds once, at the end.
//
// Memory and limits: serial.cuh, with twice the shared memory.
#include "serial.cuh"

struct Float64 {
  double sum = 0.0;
  __device__ void add(double a, double b) { sum += a * b; }
  __device__ double value() const { return sum; }
};

extern "C" int perfci_run(const perfci_call *call) { return run_serial<Float64, double>(call); }
