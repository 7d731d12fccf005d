// One block a token; a warp owns every fourth latent value and reduces its sum over model by shuffles.
//
// The lanes of a warp take the terms of one sum in turn, so a sum is 32 short ones and a tree: more
// exact than one long sum, and all 128 threads work where rank is below 128. The lanes read w_down
// rank elements apart, each in a cache line of its own. All weights are read again for each token.
// The row and the latent of a token must fit into a block's shared memory.
#include "projection.cuh"

constexpr int WARPS = 4, LANES = 32, THREADS = WARPS * LANES;

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
  for (int c = threadIdx.x; c < p.width; c += THREADS) {
    float key = 0.0f, value = 0.0f;
    for (int r = 0; r < p.rank; ++r) {
      key += latent[r] * p.w_up_k[int64_t(r) * p.width + c];
      value += latent[r] * p.w_up_v[int64_t(r) * p.width + c];
    }
    out[c] = key;
    out[p.width + c] = value;
  }
}

extern "C" int perfci_run(const perfci_call *call) {
  Projection p{};
  if (int code = read_projection(call, &p)) return code;
  const int64_t shared_bytes = (int64_t(p.model) + p.rank) * sizeof(float);
  return perfci_launch(call, {p.tokens, THREADS, shared_bytes, 1, "model and rank"}, project, p);
}
