// What the CUDA kernels share: one thread an output, and its launch.
#ifndef PRODUCT_CUH
#define PRODUCT_CUH

#include <perfci_cuda.h>

struct Product {
  const float *x, *w;
  float *out;
  int64_t rows, depth, columns, x_row, x_column, w_row, w_column;

  __device__ float sum(int64_t at) const {
    const int64_t i = at / columns, j = at % columns;
    float total = 0.0f;
    for (int64_t k = 0; k < depth; ++k)
      total += x[i * x_row + k * x_column] * w[k * w_row + j * w_column];
    return total;
  }
};

__global__ void multiply(Product p) {
  const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < p.rows * p.columns) p.out[at] = tanhf(p.sum(at));
}

inline Product read(const perfci_call *call) {
  const perfci_tensor *x = &call->inputs[0], *w = &call->inputs[1];
  return {static_cast<const float *>(x->data),
          static_cast<const float *>(w->data),
          static_cast<float *>(call->outputs[0].data),
          x->shape[0],
          x->shape[1],
          w->shape[1],
          x->strides[0],
          x->strides[1],
          w->strides[0],
          w->strides[1]};
}

inline int launch(const perfci_call *call, const Product &p) {
  return perfci_launch(call, {(p.rows * p.columns + 255) / 256, 256, 0}, multiply, p);
}

#endif
