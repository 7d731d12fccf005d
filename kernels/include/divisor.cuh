// Division of small integers by the same divisor, again and again.
#ifndef DIVISOR_CUH
#define DIVISOR_CUH

#include <cuda_runtime.h>

// n / divisor for n below 2^20, in three instructions; a division of integers takes some twenty.
struct Divisor {
  float inverse;

  __device__ explicit Divisor(int divisor) { inverse = __fdividef(1.0f, divisor); }
  __device__ int quotient(int n) const { return int((n + 0.5f) * inverse); }
};

#endif
