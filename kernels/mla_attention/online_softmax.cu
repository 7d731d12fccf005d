// perfci: max = { head_dim = 128, rank = 128 }
// One pass over the positions, with a running maximum and a running sum of exponentials.
//
// Like shared_weights, but keys are formed once: where a tile of 16 positions has a larger logit than
// all before, what was summed so far is scaled down to it. That costs a multiplication of the sums a
// tile instead of a second pass over keys and logits. Traffic: each weight once; the latents once for
// 64 queries, mostly from the caches; q and the output once. Limit: as shared_weights,
// 8 x head_dim x (rank + 80) bytes of shared memory.
#include "block_per_head.cuh"

// What a thread keeps of its query beside the sums of values.
struct Running {
  float largest = -INFINITY, sum = 0.0f;

  // Take in the first `count` positions of the tile, at least one.
  __device__ void add_tile(const Head &head, int count) {
    float logits[TILE];
    const float before = largest;
#pragma unroll
    for (int s = 0; s < TILE; ++s) {
      logits[s] = s < count ? head.logit(s) : -INFINITY;
      largest = fmaxf(largest, logits[s]);
    }
    const float shrink = expf(before - largest);
    sum *= shrink;
    for (int d = 0; d < head.head_dim; ++d) head.sums[d * THREADS] *= shrink;
#pragma unroll
    for (int s = 0; s < TILE; ++s) {
      if (s >= count) break;
      const float weight = expf(logits[s] - largest);
      sum += weight;
      head.add_value(s, weight);
    }
  }
};

__global__ void __launch_bounds__(THREADS) attend(Attention a) {
  extern __shared__ float shared[];
  const Head head(a, shared);
  for (int group = 0; group < a.sequence; group += THREADS) {
    const int t = group + threadIdx.x, last = min(group + THREADS, a.sequence) - 1;
    head.begin(a, t);
    __syncthreads();
    Running running;
    for (int from = 0; from <= last; from += TILE) {
      head.form(head.w_up_k, from, head.keys);
      head.form(head.w_up_v, from, head.values);
      __syncthreads();
      if (t <= last && from <= t) running.add_tile(head, t - from + 1);
      __syncthreads();
    }
    head.end(a, t, running.sum);
  }
}

extern "C" int perfci_run(const perfci_call *call) { return run_block_per_head(call, attend); }
