// What the lanes of a warp find out together.
#ifndef WARP_CUH
#define WARP_CUH

#include <cuda_runtime.h>

constexpr int LANES = 32;
constexpr unsigned ALL = 0xffffffff;

__device__ inline float largest_of_warp(float value) {
  for (int mask = LANES / 2; mask > 0; mask /= 2)
    value = fmaxf(value, __shfl_xor_sync(ALL, value, mask));
  return value;
}

__device__ inline float sum_of_warp(float value) {
  for (int mask = LANES / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(ALL, value, mask);
  return value;
}

#endif
