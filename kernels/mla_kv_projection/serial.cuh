// One block a token, one thread a dot product; what differs between variants is how a sum is kept.
//
// The token's row of hidden and its latent lie in shared memory, as Stored. Sum has
// `add(a, b)`, which adds a x b, and `value()`. Every block reads all weights
// again, from the second-level cache: tokens x (model x rank + 2 x rank x width) elements in all.
// The row and the latent of a token must fit into a block's shared memory.
#ifndef SERIAL_CUH
#define SERIAL_CUH

#include "projection.cuh"

constexpr int THREADS = 128;

struct Float32 {
  float sum = 0.0f;
  __device__ void add(float a, float b) { sum += a * b; }
  __device__ float value() const { return sum; }
};

// The dot product of x and a column of a matrix whose rows are `stride` apart.
template <typename Sum, typename Stored>
__device__ auto dot(const Stored *x, const float *column, int length, int stride) {
  Sum sum;
  for (int i = 0; i < length; ++i) sum.add(x[i], Stored(column[int64_t(i) * stride]));
  return sum.value();
}

// The room for `count` elements: the compiler reads them by fours, and beyond their end, where there
// must be memory, and none that other threads write. It uses nothing of what it reads there.
__host__ __device__ inline int64_t room_for(int count) { return (int64_t(count) + 3) / 4 * 4; }

template <typename Sum, typename Stored>
__global__ void __launch_bounds__(THREADS) serial(Projection p) {
  extern __shared__ __align__(16) char shared[];
  Stored *row = reinterpret_cast<Stored *>(shared), *latent = row + room_for(p.model);
  const int64_t token = blockIdx.x;

  for (int m = threadIdx.x; m < p.model; m += THREADS) row[m] = p.hidden[token * p.model + m];
  __syncthreads();
  for (int r = threadIdx.x; r < p.rank; r += THREADS)
    latent[r] = Stored(dot<Sum>(row, p.w_down + r, p.model, p.rank));
  __syncthreads();
  float *out = p.out + token * 2 * p.width;
  for (int c = threadIdx.x; c < p.width; c += THREADS) {
    out[c] = float(dot<Sum>(latent, p.w_up_k + c, p.rank, p.width));
    out[p.width + c] = float(dot<Sum>(latent, p.w_up_v + c, p.rank, p.width));
  }
}

template <typename Sum, typename Stored>
int run_serial(const perfci_call *call) {
  Projection p{};
  if (int code = read_projection(call, &p)) return code;
  const int64_t shared_bytes = (room_for(p.model) + room_for(p.rank)) * sizeof(Stored);
  return perfci_launch(call, {p.tokens, THREADS, shared_bytes, 1, "model and rank"},
                       serial<Sum, Stored>, p);
}

#endif
