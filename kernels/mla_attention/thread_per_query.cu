// perfci: max = { sequence = 512 }
// The formula as it reads: one thread a query, keys and values formed anew for each query.
//
// Two passes over the positions: the first finds the largest logit, the second sums exponentials
// and weighted values, in the output's own row. Keys are formed in both, so a query costs
// 3 x sequence x rank x head_dim multiply-adds, with everything read through the caches for each of
// them. No shared memory, no limits but patience.
#include "attention.cuh"

constexpr int THREADS = 64;

struct Query {
  const float *q, *latents, *w_up_k, *w_up_v;  // of this query, its batch, and its head
  float *out;
  int head_dim, rank, row;  // a row of w_up is heads x head_dim long

  // One element of the position's key or value: kv_latent[b, s] . w_up[:, h, d].
  __device__ float project(const float *w_up, int s, int d) const {
    float sum = 0.0f;
    for (int r = 0; r < rank; ++r)
      sum += latents[int64_t(s) * rank + r] * w_up[int64_t(r) * row + d];
    return sum;
  }

  __device__ float logit(int s, float scale) const {
    float dot = 0.0f;
    for (int d = 0; d < head_dim; ++d) dot += q[d] * project(w_up_k, s, d);
    // Rounded here: fused with a subtraction that follows, it would differ from the largest logit,
    // and at logits of 1e10 by so much that its exponential is infinite.
    return __fmul_rn(dot, scale);
  }
};

__global__ void __launch_bounds__(THREADS) attend(Attention a) {
  const int64_t query = int64_t(blockIdx.x) * THREADS + threadIdx.x;  // (batch, sequence, head)
  if (query >= a.batch * a.sequence * a.heads) return;
  const int head = query % a.heads, row = a.heads * a.head_dim;
  const int t = query / a.heads % a.sequence;
  const int64_t b = query / a.heads / a.sequence;
  const Query own = {a.q + query * a.head_dim,
                     a.kv_latent + b * a.sequence * a.rank,
                     a.w_up_k + head * a.head_dim,
                     a.w_up_v + head * a.head_dim,
                     a.out + query * a.head_dim,
                     a.head_dim,
                     a.rank,
                     row};

  float largest = -INFINITY, sum = 0.0f;
  for (int s = 0; s <= t; ++s) largest = fmaxf(largest, own.logit(s, a.scale));
  for (int d = 0; d < a.head_dim; ++d) own.out[d] = 0.0f;
  for (int s = 0; s <= t; ++s) {
    const float weight = expf(own.logit(s, a.scale) - largest);
    sum += weight;
    for (int d = 0; d < a.head_dim; ++d) 
      own.out[d] += weight * own.project(own.w_up_v, s, d);
  }
  for (int d = 0; d < a.head_dim; ++d) own.out[d] /= sum;
}

extern "C" int perfci_run(const perfci_call *call) {
  Attention a{};
  if (int code = read_attention(call, &a)) return code;
  const int64_t queries = a.batch * a.sequence * a.heads;
  return perfci_launch(call, {(queries + THREADS - 1) / THREADS, THREADS, 0}, attend, a);
}
