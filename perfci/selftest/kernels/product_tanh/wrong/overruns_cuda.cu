// Planted: writes one element behind its output.
#include "../product.cuh"

__global__ void multiply_too_much(Product p) {
  const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < p.rows * p.columns) p.out[at] = tanhf(p.sum(at));
  if (at == p.rows * p.columns) p.out[at] = 1.0f;
}

extern "C" int perfci_run(const perfci_call *call) {
  const Product p = read(call);
  return perfci_launch(call, {p.rows * p.columns / 256 + 1, 256, 0}, multiply_too_much, p);
}
