// serial_fp32 with sums on two levels: chunks of 16 terms, and the sum of the chunks.
//
// Memory and limits: serial.cuh. A term meets 16 roundings in its chunk and length / 16 after it.
#include "serial.cuh"

struct Chunked {
  float chunk = 0.0f, sum = 0.0f;
  int count = 0;
  __device__ void add(float a, float b) {
    chunk += a * b;
    if (++count % 16 == 0) {
      sum += chunk;
      chunk = 0.0f;
    }
  }
  __device__ float value() const { return sum + chunk; }
};

extern "C" int perfci_run(const perfci_call *call) { return run_serial<Chunked, float>(call); }
