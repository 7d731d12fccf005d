// One block a (batch, head), one lane a query, weights in shared memory: what such variants share.
//
// The block copies the head's slices of both weights once. It takes its queries in groups of
// THREADS, and for each group the positions in tiles: all threads form the keys or the values of a
// tile in shared memory, then each reads them for its own query. Queries and sums lie in shared
// memory too, a column a thread, since head_dim is not known to the compiler.
#ifndef BLOCK_PER_HEAD_CUH
#define BLOCK_PER_HEAD_CUH

#include "attention.cuh"

constexpr int THREADS = 64, TILE = 16;

// Shared memory, in floats, in this order.
struct Layout {
  int w_up_k, w_up_v, keys, values, q, sums, end;

  __host__ __device__ explicit Layout(const Attention &a) {
    w_up_k = 0;                                // [r][d]
    w_up_v = w_up_k + a.rank * a.head_dim;     // [r][d]
    keys = w_up_v + a.rank * a.head_dim;       // [position][d]
    values = keys + TILE * a.head_dim;         // [position][d]
    q = values + TILE * a.head_dim;            // [d][thread]
    sums = q + THREADS * a.head_dim;           // [d][thread]
    end = sums + THREADS * a.head_dim;
  }
};

struct Head {
  const float *latents;  // of the batch's sequence
  float *w_up_k, *w_up_v, *keys, *values, *q, *sums;  // the last two: the thread's own column
  int64_t first, row;    // of the head's row in q and out, and the distance of two rows
  int sequence, head_dim, rank;
  float scale;

  // Copies the weights; call __syncthreads before they are read.
  __device__ Head(const Attention &a, float *shared)
      : sequence(a.sequence), head_dim(a.head_dim), rank(a.rank), scale(a.scale) {
    const Layout at(a);
    const int head = blockIdx.x % a.heads;
    const int64_t batch = blockIdx.x / a.heads;
    row = int64_t(a.heads) * head_dim;
    first = batch * sequence * row + head * head_dim;
    latents = a.kv_latent + batch * sequence * rank;
    w_up_k = shared + at.w_up_k;
    w_up_v = shared + at.w_up_v;
    keys = shared + at.keys;
    values = shared + at.values;
    q = shared + at.q + threadIdx.x;
    sums = shared + at.sums + threadIdx.x;
    for (int i = threadIdx.x; i < rank * head_dim; i += THREADS) {
      const int r = i / head_dim;
      const int64_t from = r * row + head * head_dim + i - r * head_dim;
      w_up_k[i] = a.w_up_k[from];
      w_up_v[i] = a.w_up_v[from];
    }
  }

  // The thread's query to its column, and its sums to zero.
  __device__ void begin(const Attention &a, int t) const {
    for (int d = 0; d < head_dim; ++d) {
      if (t < sequence) q[d * THREADS] = a.q[first + t * row + d];
      sums[d * THREADS] = 0.0f;
    }
  }

  // rows[s][d] = latents[from + s] . w_up[:, d], by all threads; s < TILE and within the sequence.
  __device__ void form(const float *w_up, int from, float *rows) const {
    const int count = min(TILE, sequence - from) * head_dim;
    for (int i = threadIdx.x; i < count; i += THREADS) {
      const int s = i / head_dim, d = i - s * head_dim;
      const float *latent = latents + int64_t(from + s) * rank;
      float sum = 0.0f;
      for (int r = 0; r < rank; ++r) sum += latent[r] * w_up[r * head_dim + d];
      rows[i] = sum;
    }
  }

  // Of the thread's query and position s of the tile.
  __device__ float logit(int s) const {
    float dot = 0.0f;
    for (int d = 0; d < head_dim; ++d) dot += q[d * THREADS] * keys[s * head_dim + d];
    // Rounded here: fused with a subtraction that follows, it would differ from the largest logit.
    return __fmul_rn(dot, scale);
  }

  __device__ void add_value(int s, float weight) const {
    for (int d = 0; d < head_dim; ++d) sums[d * THREADS] += weight * values[s * head_dim + d];
  }

  __device__ void end(const Attention &a, int t, float sum_of_weights) const {
    if (t >= sequence) return;
    for (int d = 0; d < head_dim; ++d)
      a.out[first + t * row + d] = sums[d * THREADS] / sum_of_weights;
  }
};

template <typename Kernel>
int run_block_per_head(const perfci_call *call, Kernel *kernel) {
  Attention a{};
  if (int code = read_attention(call, &a)) return code;
  // Above, the offsets in shared memory would not fit into an int.
  constexpr int LARGEST = 1 << 13;
  if (int code = check_at_most(call, "head_dim", a.head_dim, LARGEST)) return code;
  if (int code = check_at_most(call, "rank", a.rank, LARGEST)) return code;
  const int64_t shared_bytes = Layout(a).end * int64_t(sizeof(float));
  return perfci_launch(
      call, {a.batch * a.heads, THREADS, shared_bytes, 1, "head_dim and rank"}, kernel, a);
}

#endif
