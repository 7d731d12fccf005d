// Sums by atomics, in whatever order the blocks come.
#ifndef ATOMICS_CUH
#define ATOMICS_CUH

#include "product.cuh"

constexpr int64_t CHUNK = 8;

__global__ void add_terms(Product p) {
  const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t outputs = p.rows * p.columns, first = at / outputs * CHUNK;
  if (first >= p.depth) return;
  const int64_t i = at % outputs / p.columns, j = at % outputs % p.columns;
  float total = 0.0f;
  for (int64_t k = first; k < p.depth && k < first + CHUNK; ++k)
    total += p.x[i * p.x_row + k * p.x_column] * p.w[k * p.w_row + j * p.w_column];
  atomicAdd(&p.out[i * p.columns + j], total);
}

__global__ void squash(Product p) {
  const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < p.rows * p.columns) p.out[at] = tanhf(p.out[at]);
}

inline int multiply_by_atomics(const perfci_call *call) {
  const Product p = read(call);
  const int64_t outputs = p.rows * p.columns;
  const cudaError_t error =
      cudaMemsetAsync(p.out, 0, size_t(outputs) * sizeof(float), perfci_stream(call));
  if (error != cudaSuccess) return perfci_cuda_fail(call, "clearing the sums", error);
  const int64_t threads = outputs * ((p.depth + CHUNK - 1) / CHUNK);
  if (int code = perfci_launch(call, {(threads + 255) / 256, 256, 0}, add_terms, p)) return code;
  return perfci_launch(call, {(outputs + 255) / 256, 256, 0}, squash, p);
}

#endif
