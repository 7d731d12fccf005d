// perfci: max = { head_dim = 128, rank = 128 }
// Weights in shared memory: one block a (batch, head), one lane a query, softmax in two passes.
//
// The first pass over the positions finds the largest logit, the second sums exponentials and
// weighted values. Keys are formed in both, but once for 64 queries, where thread_per_query forms
// them for each. A block walks through all of its head's queries, so there are only batch x heads
// blocks: few, and long ones for a long sequence. Traffic: each weight once; the latents twice for 64
// queries, mostly from the caches; q and the output once. Limit: the head's slices of both weights,
// 16 keys and values, and 64 queries and sums in shared memory, 8 x head_dim x (rank + 80) bytes.
#include "block_per_head.cuh"

__global__ void __launch_bounds__(THREADS) attend(Attention a) {
  extern __shared__ float shared[];
  const Head head(a, shared);
  for (int group = 0; group < a.sequence; group += THREADS) {
    const int t = group + threadIdx.x, last = min(group + THREADS, a.sequence) - 1;
    head.begin(a, t);
    __syncthreads();
    float largest = -INFINITY, sum = 0.0f;
    for (int from = 0; from <= last; from += TILE) {
      head.form(head.w_up_k, from, head.keys);
      __syncthreads();
      for (int s = 0; s < TILE && from + s <= min(t, last); ++s)
        largest = fmaxf(largest, head.logit(s));
      __syncthreads();
    }
    for (int from = 0; from <= last; from += TILE) {
      head.form(head.w_up_k, from, head.keys);
      head.form(head.w_up_v, from, head.values);
      __syncthreads();
      for (int s = 0; s < TILE && from + s <= min(t, last); ++s) {
        const float weight = expf(head.logit(s) - largest);
        sum += weight;
        head.add_value(s, weight);
      }
      __syncthreads();
    }
    head.end(a, t, sum);
  }
}

extern "C" int perfci_run(const perfci_call *call) { return run_block_per_head(call, attend); }
