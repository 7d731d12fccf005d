// Like warp_shuffle with twice the threads: one K or one V element a thread in the last stage.
//
// One block of 256 threads a token. In the first stage each of 8 warps owns every eighth latent
// value and reduces its sum over model by shuffles. In the second a thread goes through keys and
// values as one row of 2 x width: at a width of 128 each thread has one element, so no thread waits
// for another's second sum. All weights are read again for each token, w_down rank elements apart.
// The row and the latent of a token must fit into a block's shared memory.
#include "projection.cuh"

constexpr int WARPS = 8, LANES = 32, THREADS = WARPS * LANES;

__global__ void __launch_bounds__(THREADS) project(Projection p) {
  extern __shared__ float shared[];
  float *row = shared, *latent = row + p.model;
  const int64_t token = blockIdx.x;
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;

  for (int m = threadIdx.x; m < p.model; m += THREADS) row[m] = p.hidden[token * p.model + m];
  __syncthreads();
  for (int r = warp; r < p.rank; r += WARPS) {
    float sum = 0.0f;
    for (int m = lane; m < p.model; m += LANES) sum += row[m] * p.w_down[int64_t(m) * p.rank + r];
    for (int distance = LANES / 2; distance > 0; distance /= 2)
      sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (lane == 0) latent[r] = sum;
  }
  __syncthreads();
  float *out = p.out + token * 2 * p.width;
  for (int c = threadIdx.x; c < 2 * p.width; c += THREADS) {
    const float *column = c < p.width ? p.w_up_k + c : p.w_up_v + c - p.width;
    float sum = 0.0f;
    for (int r = 0; r < p.rank; ++r) sum += latent[r] * column[int64_t(r) * p.width];
    out[c] = sum;
  }
}

extern "C" int perfci_run(const perfci_call *call) {
  Projection p{};
  if (int code = read_projection(call, &p)) return code;
  const int64_t shared_bytes = (int64_t(p.model) + p.rank) * sizeof(float);
  return perfci_launch(call, {p.tokens, THREADS, shared_bytes, 1, "model and rank"}, project, p);
}
