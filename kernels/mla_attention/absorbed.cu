// perfci: max = { head_dim = 128, rank = 128 }
// Attention on the latents: keys and values are never formed.
//
// q . (latent @ w_up_k) = (w_up_k @ q) . latent, and the sum of p (latent @ w_up_v) is
// (the sum of p latent) @ w_up_v. So the head's w_up_k is folded into the query once, w_up_v into
// the output once, and a position costs 2 x rank multiply-adds instead of 2 x rank x head_dim.
//
// Where a sequence is one tile of 32 positions, and rank and head_dim are small, one_tile.cuh does
// it, with little else than one latency of memory to wait for; the rest is for all other shapes.
//
// A warp takes QUERIES queries of one head. Positions come in tiles of 32: for the logits a lane has
// a position, for the weighted sum of latents a lane has every 32nd element of the latent; the
// softmax is taken on line, with a running maximum and sum a query. A block of WARPS warps shares the
// head's weights and the tile of latents in shared memory; rows there have an odd length, so that
// lanes in a column hit different banks. Traffic: a block reads both weight slices and the latents up
// to its last query, mostly from the second-level cache; q and the output once. Limits: rank 128
// (SLOTS registers a lane), and both weight slices in shared memory.
#include <cuda_pipeline.h>

#include "attention.cuh"
#include "one_tile.cuh"

constexpr int WARPS = 4, THREADS = WARPS * LANES;
constexpr int TILE = LANES;       // positions
constexpr int SLOTS = 4;          // elements of the latent a lane

__host__ __device__ constexpr int round_up(int count, int unit) {
  return (count + unit - 1) / unit * unit;
}

// Shared memory, in floats, in this order. Queries and weights are read four at a time.
struct Layout {
  int padded_rank, latent_row, weight_row;
  int folded, weights, latents, q, w_up_k, w_up_v, end;

  __host__ __device__ Layout(const Attention &a, int queries)
      : padded_rank(round_up(a.rank, 4)), latent_row(padded_rank + 1), weight_row(a.head_dim | 1) {
    folded = 0;                                   // [query][r]: the query, then the sum of latents
    weights = folded + queries * padded_rank;     // [query][position]
    latents = weights + queries * TILE;           // [position][r]
    q = latents + TILE * latent_row;              // [query][d]
    w_up_k = q + queries * a.head_dim;            // [r][d]
    w_up_v = w_up_k + a.rank * weight_row;
    end = w_up_v + a.rank * weight_row;
  }
};

// Copy `count` rows of `columns` floats to rows that are `to_row` apart, asynchronously, by warps.
__device__ void load_rows(const float *from, int64_t from_row, int count, int columns, float *to,
                          int to_row) {
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
#pragma unroll 2
  for (int row = warp; row < count; row += WARPS)
#pragma unroll 1
    for (int c = lane; c < columns; c += LANES)
      __pipeline_memcpy_async(to + row * to_row + c, from + row * from_row + c, sizeof(float));
}

// What a warp keeps of its queries while it goes over the positions.
template <int QUERIES>
struct State {
  float largest[QUERIES], sum[QUERIES], latent[QUERIES][SLOTS];

  __device__ State() {
    for (int i = 0; i < QUERIES; ++i) {
      largest[i] = -INFINITY;
      sum[i] = 0.0f;
      for (int slot = 0; slot < SLOTS; ++slot) latent[i][slot] = 0.0f;
    }
  }

  // Take in one tile. folded[i] is query i's, weights[i] is room for its 32 weights; query i sees
  // position `lane` of the tile if lane <= last + i.
  __device__ void add_tile(const Layout &at, const float *latents, const float *folded,
                           float *weights, int rank, int last) {
    const int lane = threadIdx.x % LANES;
    float logit[QUERIES] = {};
    const float *own = latents + lane * at.latent_row;
#pragma unroll 2
    for (int r = 0; r < at.padded_rank; r += 4) {
      const float x[4] = {own[r], own[r + 1], own[r + 2], own[r + 3]};
#pragma unroll
      for (int i = 0; i < QUERIES; ++i) {
        const float4 f = *reinterpret_cast<const float4 *>(folded + i * at.padded_rank + r);
        logit[i] += f.x * x[0] + f.y * x[1] + f.z * x[2] + f.w * x[3];
      }
    }
#pragma unroll
    for (int i = 0; i < QUERIES; ++i) {
      const float seen = lane <= last + i ? logit[i] : -INFINITY;
      const float before = largest[i];
      largest[i] = fmaxf(before, largest_of_warp(seen));
      const float shrink = expf(before - largest[i]), weight = expf(seen - largest[i]);
      weights[i * TILE + lane] = weight;
      sum[i] = sum[i] * shrink + weight;  // a lane's own positions; lanes are added up at the end
#pragma unroll
      for (int slot = 0; slot < SLOTS; ++slot) latent[i][slot] *= shrink;
    }
    __syncwarp();
    add_latents(at, latents, weights, rank);
    __syncwarp();
  }

  __device__ void add_latents(const Layout &at, const float *latents, const float *weights,
                              int rank) {
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int slot = 0; slot < SLOTS; ++slot) {
      const int r = lane + slot * LANES;
      if (r >= rank) break;
#pragma unroll 2
      for (int s = 0; s < TILE; s += 4) {
        const float *column = latents + s * at.latent_row + r;
        const float x[4] = {column[0], column[at.latent_row], column[2 * at.latent_row],
                            column[3 * at.latent_row]};
#pragma unroll
        for (int i = 0; i < QUERIES; ++i) {
          const float4 w = *reinterpret_cast<const float4 *>(weights + i * TILE + s);
          latent[i][slot] += w.x * x[0] + w.y * x[1] + w.z * x[2] + w.w * x[3];
        }
      }
    }
  }
};

// folded[i][r] = scale * sum over d of q[i][d] * w_up_k[r][d], with zeros up to the padded rank.
// Logits are not scaled later: one that is rounded where it is compared and not where it is
// subtracted makes an infinite exponential at logits of 1e10.
template <int QUERIES>
__device__ void fold_queries(const Attention &a, const Layout &at, const float *q,
                             const float *w_up_k, float *folded) {
#pragma unroll 1
  for (int r = threadIdx.x % LANES; r < at.padded_rank; r += LANES) {
    float sum[QUERIES] = {};
#pragma unroll 4
    for (int d = 0; r < a.rank && d < a.head_dim; ++d)
#pragma unroll
      for (int i = 0; i < QUERIES; ++i)
        sum[i] += q[i * a.head_dim + d] * w_up_k[r * at.weight_row + d];
#pragma unroll
    for (int i = 0; i < QUERIES; ++i) folded[i * at.padded_rank + r] = sum[i] * a.scale;
  }
}

template <int QUERIES>
__global__ void __launch_bounds__(THREADS, 4) attend(Attention a) {
  extern __shared__ __align__(16) float shared[];
  constexpr int BLOCK_QUERIES = WARPS * QUERIES;
  const Layout at(a, BLOCK_QUERIES);
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const unsigned pairs = a.batch * a.heads, groups = gridDim.x / pairs, pair = blockIdx.x % pairs;
  const int group = groups - 1 - blockIdx.x / pairs;  // the longest first
  const int head = pair % a.heads;
  const int64_t b = pair / a.heads;
  const int first = group * BLOCK_QUERIES, t = first + warp * QUERIES;  // of the block, of the warp
  const int there = min(BLOCK_QUERIES, a.sequence - first), last = first + there - 1;
  const int64_t row = int64_t(a.heads) * a.head_dim;
  const float *latents = a.kv_latent + b * a.sequence * a.rank;

  load_rows(a.q + (b * a.sequence + first) * row + head * a.head_dim, row, there, a.head_dim,
            shared + at.q, a.head_dim);
  load_rows(a.w_up_k + head * a.head_dim, row, a.rank, a.head_dim, shared + at.w_up_k,
            at.weight_row);
  load_rows(a.w_up_v + head * a.head_dim, row, a.rank, a.head_dim, shared + at.w_up_v,
            at.weight_row);
#pragma unroll 1
  for (int i = threadIdx.x; i < TILE * at.latent_row; i += THREADS) shared[at.latents + i] = 0.0f;
#pragma unroll 1
  for (int i = there * a.head_dim + threadIdx.x; i < BLOCK_QUERIES * a.head_dim; i += THREADS)
    shared[at.q + i] = 0.0f;
  __syncthreads();  // the zeros lie before latents are copied over them

  float *folded = shared + at.folded + warp * QUERIES * at.padded_rank;
  State<QUERIES> state;
  for (int from = 0; from <= last; from += TILE) {
    load_rows(latents + int64_t(from) * a.rank, a.rank, min(TILE, last + 1 - from), a.rank,
              shared + at.latents, at.latent_row);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    if (from == 0) {
      fold_queries<QUERIES>(a, at, shared + at.q + warp * QUERIES * a.head_dim,
                            shared + at.w_up_k, folded);
      __syncwarp();
    }
    if (from < t + QUERIES)
      state.add_tile(at, shared + at.latents, folded,
                     shared + at.weights + warp * QUERIES * TILE, a.rank, t - from);
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < QUERIES; ++i) {
    const float share = 1.0f / sum_of_warp(state.sum[i]);
#pragma unroll
    for (int slot = 0; slot < SLOTS; ++slot) {
      const int r = lane + slot * LANES;
      if (r < a.rank) folded[i * at.padded_rank + r] = state.latent[i][slot] * share;
    }
  }
  __syncwarp();
#pragma unroll 1
  for (int d = lane; d < a.head_dim; d += LANES) {
    float sum[QUERIES] = {};
#pragma unroll 4
    for (int r = 0; r < a.rank; ++r)
#pragma unroll
      for (int i = 0; i < QUERIES; ++i)
        sum[i] += folded[i * at.padded_rank + r] * shared[at.w_up_v + r * at.weight_row + d];
    float *out = a.out + (b * a.sequence + t) * row + head * a.head_dim + d;
#pragma unroll
    for (int i = 0; i < QUERIES; ++i)
      if (t + i < a.sequence) out[i * row] = sum[i];
  }
}

template <int QUERIES>
static int launch(const perfci_call *call, const Attention &a) {
  const int block_queries = WARPS * QUERIES;
  const int64_t groups = (a.sequence + block_queries - 1) / block_queries;
  const int64_t shared_bytes = Layout(a, block_queries).end * int64_t(sizeof(float));
  return perfci_launch(
      call, {a.batch * a.heads * groups, THREADS, shared_bytes, 1, "head_dim and rank"},
      attend<QUERIES>, a);
}

extern "C" int perfci_run(const perfci_call *call) {
  Attention a{};
  if (int code = read_attention(call, &a)) return code;
  if (int code = check_at_most(call, "rank", a.rank, SLOTS * LANES)) return code;
  if (is_one_tile(a)) return run_one_tile(call, a);
  // Several queries a warp share what it reads, once there are enough for every multiprocessor.
  const int64_t warps = int64_t(16) * perfci_device_attribute(cudaDevAttrMultiProcessorCount);
  return a.batch * a.heads * a.sequence >= 4 * warps ? launch<4>(call, a) : launch<1>(call, a);
}
