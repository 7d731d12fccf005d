// Several tokens a block, so that a weight that was read once serves all of them.
//
// A thread sums a tile of 4 tokens x 4 columns; where there are fewer tiles than threads, threads
// share the terms of a tile's sums. Both products of a tile of tokens stay in one kernel, so the
// latent never goes through memory.
//
// `clustered` (compute capability 9.0 and later, small weights) is made for latency. A cluster of
// four blocks takes 12 tokens. Each block sums over a quarter of model, sends its share of the
// latent to all four, and computes a quarter of the output's columns: it reads a quarter of the
// weights only, asynchronously, all at once. That is 27 KB a block at the headline shape, where
// three tokens a block without clusters need all 99 KB. Traffic: the weights once a cluster from the
// second-level cache, hidden and the output once. Limits: rank, model and width / 2 multiples of 4,
// weights 16-byte aligned, and a block's share in BUDGET_BYTES of shared memory.
//
// `streamed` takes what is left: 4 or 32 tokens a block, weights read where they lie, through the
// first-level cache, hidden in chunks. Traffic: the weights once a block from the second-level cache.
// Limit: the latent of a tile, 16 to 128 bytes x rank, in shared memory.
#include <cuda_pipeline.h>

#include "cluster.cuh"
#include "projection.cuh"

constexpr int THREADS = 256, LANES = 32, WARPS = THREADS / LANES;
constexpr int SIDE = 4;                               // of a thread's tile
constexpr int PARTIAL = THREADS * SIDE * SIDE;        // partial sums of all threads
constexpr int CLUSTER = 4, CLUSTER_TOKENS = 12;       // of `clustered`
constexpr int64_t BUDGET_BYTES = 100 * 1024;          // two blocks a multiprocessor
constexpr int CHUNK = 256, PANEL = 128;               // of `streamed`: of hidden, of columns

__host__ __device__ constexpr int tiles_of(int tokens, int columns) {
  return tokens / SIDE * ((columns + SIDE - 1) / SIDE);
}

// n / divisor for n below 2^20, in three instructions; a division of integers takes some twenty.
struct Divisor {
  float inverse;

  __device__ explicit Divisor(int divisor) { inverse = __fdividef(1.0f, divisor); }
  __device__ int quotient(int n) const { return int((n + 0.5f) * inverse); }
};

// What a thread does in a product of TOKENS tokens and some columns: tile (token, column), and of
// its terms number part, part + parts, ...; threads that are left over have part == parts.
template <int TOKENS>
struct Place {
  int quads, parts, part, token, column;

  Divisor by_quads;

  __device__ explicit Place(int columns)
      : quads((columns + SIDE - 1) / SIDE), by_quads(quads) {
    const int tiles = TOKENS / SIDE * quads;
    const Divisor by_tiles(tiles);
    parts = by_tiles.quotient(THREADS);
    part = by_tiles.quotient(threadIdx.x);
    const int tile = threadIdx.x - part * tiles, group = by_quads.quotient(tile);
    token = group * SIDE;
    column = (tile - group * quads) * SIDE;
  }

  // partial[part][token][column] = sum over the part's k of x[k][token] * weights(k, column)
  template <typename Weights>
  __device__ void multiply(const float *x, Weights weights, int depth, float *partial) const {
    if (part >= parts) return;
    float4 sum[SIDE] = {};
#pragma unroll 4
    for (int k = part; k < depth; k += parts) {
      const float4 a = *reinterpret_cast<const float4 *>(x + k * TOKENS + token);
      const float4 b = weights(k, column);
      const float along[SIDE] = {a.x, a.y, a.z, a.w};
#pragma unroll
      for (int i = 0; i < SIDE; ++i) {
        sum[i].x += along[i] * b.x;
        sum[i].y += along[i] * b.y;
        sum[i].z += along[i] * b.z;
        sum[i].w += along[i] * b.w;
      }
    }
    float4 *row = reinterpret_cast<float4 *>(partial) + (part * TOKENS + token) * quads;
#pragma unroll
    for (int i = 0; i < SIDE; ++i) row[i * quads + column / SIDE] = sum[i];
  }

  // Call body(token, column, the sums of four columns) for all of the product, by all threads. The
  // same thread has the same elements each time.
  template <typename Body>
  __device__ void for_each_total(const float *partial, const Body &body) const {
    const int count = TOKENS * quads;
#pragma unroll 1
    for (int i = threadIdx.x; i < count; i += THREADS) {
      const float4 *term = reinterpret_cast<const float4 *>(partial) + i;
      float4 total = term[0];
#pragma unroll 4
      for (int n = 1; n < parts; ++n) {
        const float4 next = term[n * count];
        total = {total.x + next.x, total.y + next.y, total.z + next.z, total.w + next.w};
      }
      const int token = by_quads.quotient(i);
      body(token, (i - token * quads) * SIDE, total);
    }
  }
};

// A matrix in shared memory, its columns a multiple of 4.
struct Shared {
  const float *data;
  int stride;

  __device__ float4 operator()(int k, int column) const {
    return *reinterpret_cast<const float4 *>(data + k * stride + column);
  }
};

// A matrix where it lies; columns beyond the last repeat it.
template <bool ALIGNED>
struct Global {
  const float *data;
  int stride, columns;

  __device__ float4 operator()(int k, int column) const {
    const float *row = data + int64_t(k) * stride;
    if (ALIGNED) return __ldg(reinterpret_cast<const float4 *>(row + column));
    const auto at = [&](int c) { return __ldg(row + min(c, columns - 1)); };
    return {at(column), at(column + 1), at(column + 2), at(column + 3)};
  }
};

// x[m][token] = hidden[first + token][from + m]; zeros where there is no such token.
template <int TOKENS>
__device__ void load_tokens(const Projection &p, int64_t first, int from, int depth, float *x) {
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
#pragma unroll 1
  for (int token = warp; token < TOKENS; token += WARPS) {
    const float *row = p.hidden + (first + token) * p.model + from;
#pragma unroll 2
    for (int m = lane; m < depth; m += LANES) {
      if (first + token < p.tokens)
        __pipeline_memcpy_async(x + m * TOKENS + token, row + m, sizeof(float));
      else
        x[m * TOKENS + token] = 0.0f;
    }
  }
}

// Copy rows of `columns` floats, a multiple of 4 and 16-byte aligned, next to each other.
__device__ void load_rows(const float *from, int64_t stride, int rows, int columns, float *to) {
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
#pragma unroll 2
  for (int row = warp; row < rows; row += WARPS)
#pragma unroll 1
    for (int c = lane * SIDE; c < columns; c += LANES * SIDE)
      __pipeline_memcpy_async(to + row * columns + c, from + row * stride + c, sizeof(float4));
}

// Shared memory of `clustered`, in floats, in this order.
struct Layout {
  int depth, columns;  // a block's share of model and of the output's columns
  int down, up, inbox, latent, partial, mailbox, end;

  __host__ __device__ explicit Layout(const Projection &p)
      : depth(p.model / CLUSTER), columns(2 * p.width / CLUSTER) {
    down = depth * CLUSTER_TOKENS;
    up = down + depth * p.rank;
    inbox = up + p.rank * columns;
    latent = inbox + CLUSTER * CLUSTER_TOKENS * p.rank;
    partial = latent + p.rank * CLUSTER_TOKENS;
    mailbox = partial + PARTIAL;
    end = mailbox + sizeof(Mailbox) / sizeof(float);
  }
};

__global__ void __launch_bounds__(THREADS) clustered(Projection p) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) float shared[];
  constexpr int TOKENS = CLUSTER_TOKENS;
  const Layout at(p);
  float *x = shared, *partial = shared + at.partial, *latent = shared + at.latent;
  float *inbox = shared + at.inbox;  // [sender][token][r]
  Mailbox *mailbox = reinterpret_cast<Mailbox *>(shared + at.mailbox);
  const int share = block_in_cluster(), column = share * at.columns;
  const int64_t first = int64_t(blockIdx.x / CLUSTER) * TOKENS;
  const int latents = TOKENS * p.rank;
  if (threadIdx.x == 0) open_mailbox(mailbox, CLUSTER * latents * int(sizeof(float)));
  __syncwarp();
  announce();

  load_tokens<TOKENS>(p, first, share * at.depth, at.depth, x);
  load_rows(p.w_down + int64_t(share) * at.depth * p.rank, p.rank, at.depth, p.rank,
            shared + at.down);
  __pipeline_commit();
  const float *w_up = column < p.width ? p.w_up_k + column : p.w_up_v + column - p.width;
  load_rows(w_up, p.width, p.rank, at.columns, shared + at.up);
  __pipeline_commit();
  const Place<TOKENS> down(p.rank), up(at.columns);

  __pipeline_wait_prior(1);
  __syncthreads();
  down.multiply(x, Shared{shared + at.down, p.rank}, at.depth, partial);
  __syncthreads();
  await_all();
  down.for_each_total(partial, [&](int token, int r, float4 total) {
    float *slot = inbox + share * latents + token * p.rank + r;
    for (int to = 0; to < CLUSTER; ++to) send(to, slot, total, mailbox);
  });
  await_mail(mailbox);

  const Divisor by_rank(p.rank);
#pragma unroll 1
  for (int i = threadIdx.x; i < latents; i += THREADS) {
    float sum = 0.0f;
    for (int from = 0; from < CLUSTER; ++from) sum += inbox[from * latents + i];
    const int token = by_rank.quotient(i);
    latent[(i - token * p.rank) * TOKENS + token] = sum;
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  up.multiply(latent, Shared{shared + at.up, at.columns}, p.rank, partial);
  __syncthreads();
  up.for_each_total(partial, [&](int token, int c, float4 total) {
    float *row = p.out + (first + token) * 2 * p.width;
    if (first + token < p.tokens) *reinterpret_cast<float4 *>(row + column + c) = total;
  });
#endif
}

template <int TOKENS, bool ALIGNED>
__global__ void __launch_bounds__(THREADS, 2) streamed(Projection p) {
  extern __shared__ __align__(16) float shared[];
  float *partial = shared, *x = partial + PARTIAL, *latent = x + CHUNK * TOKENS;
  const int64_t first = int64_t(blockIdx.x) * TOKENS;

  for (int i = threadIdx.x; i < p.rank * TOKENS; i += THREADS) latent[i] = 0.0f;
  for (int from = 0; from < p.model; from += CHUNK) {
    const int depth = min(CHUNK, p.model - from);
    load_tokens<TOKENS>(p, first, from, depth, x);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int r = 0; r < p.rank; r += PANEL) {
      const int columns = min(PANEL, p.rank - r);
      const float *w_down = p.w_down + int64_t(from) * p.rank + r;
      const Place<TOKENS> place(columns);
      place.multiply(x, Global<ALIGNED>{w_down, p.rank, columns}, depth, partial);
      __syncthreads();
      place.for_each_total(partial, [&](int token, int column, float4 total) {
        const float sums[SIDE] = {total.x, total.y, total.z, total.w};
        for (int j = 0; j < SIDE && column + j < columns; ++j)
          latent[(r + column + j) * TOKENS + token] += sums[j];
      });
      __syncthreads();
    }
  }
  __syncthreads();

  for (int slot = 0; slot < 2; ++slot) {
    for (int c = 0; c < p.width; c += PANEL) {
      const int columns = min(PANEL, p.width - c);
      const float *w_up = (slot == 0 ? p.w_up_k : p.w_up_v) + c;
      const Place<TOKENS> place(columns);
      place.multiply(latent, Global<ALIGNED>{w_up, p.width, columns}, p.rank, partial);
      __syncthreads();
      place.for_each_total(partial, [&](int token, int column, float4 total) {
        if (first + token >= p.tokens) return;
        float *out = p.out + (2 * (first + token) + slot) * p.width + c + column;
        const float sums[SIDE] = {total.x, total.y, total.z, total.w};
        if (ALIGNED) *reinterpret_cast<float4 *>(out) = total;
        else
          for (int j = 0; j < SIDE && column + j < columns; ++j) out[j] = sums[j];
      });
      __syncthreads();
    }
  }
}

// Whether four columns of each weight and of the output can be read and written at once.
static bool is_aligned(const Projection &p) {
  for (const float *pointer : {p.w_down, p.w_up_k, p.w_up_v, (const float *)p.out})
    if (reinterpret_cast<uintptr_t>(pointer) % sizeof(float4) != 0) return false;
  return p.rank % SIDE == 0 && p.width % SIDE == 0;
}

static bool fits_cluster(const Projection &p) {
  if (p.rank == 0 || p.model % CLUSTER != 0 || p.width % (CLUSTER / 2 * SIDE) != 0) return false;
  const int widest = p.rank > p.width / 2 ? p.rank : p.width / 2;
  if (tiles_of(CLUSTER_TOKENS, widest) > THREADS || p.model > 1 << 16) return false;
  return Layout(p).end * int64_t(sizeof(float)) <= BUDGET_BYTES &&
         perfci_device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9;
}

template <int TOKENS>
static int run_streamed(const perfci_call *call, const Projection &p, bool aligned) {
  const int64_t floats = PARTIAL + (int64_t(CHUNK) + p.rank) * TOKENS;
  return perfci_launch(
      call, {(p.tokens + TOKENS - 1) / TOKENS, THREADS, floats * int64_t(sizeof(float))},
      aligned ? streamed<TOKENS, true> : streamed<TOKENS, false>, p);
}

extern "C" int perfci_run(const perfci_call *call) {
  Projection p{};
  if (int code = read_projection(call, &p)) return code;
  const bool aligned = is_aligned(p);
  if (aligned && fits_cluster(p)) {
    const int64_t blocks = (p.tokens + CLUSTER_TOKENS - 1) / CLUSTER_TOKENS * CLUSTER;
    const int64_t shared_bytes = Layout(p).end * int64_t(sizeof(float));
    return perfci_launch(call, {blocks, THREADS, shared_bytes, CLUSTER}, clustered, p);
  }
  // Large tiles read the weights less often, once there are enough for every multiprocessor.
  const int processors = perfci_device_attribute(cudaDevAttrMultiProcessorCount);
  return p.tokens >= int64_t(32) * processors ? run_streamed<32>(call, p, aligned)
                                              : run_streamed<4>(call, p, aligned);
}
