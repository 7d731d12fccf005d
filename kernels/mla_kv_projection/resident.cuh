// Both products by blocks that hold all weights in shared memory.
//
// A block takes tiles of TOKENS tokens, one after another. One thread starts the copies of the first
// tile and of all weights at once, each to a multiple of 128 bytes, without which a copy takes
// several times as long. A thread sums TOKENS tokens x 4 columns over 4 rows at a time and reads a
// weight once for all tokens; threads that share a sum's rows leave their parts in shared memory,
// where lanes share the adding up. The latent never leaves the block.
//
// A block at the headline shape is done after some 400 instructions a thread, each fetched for the
// first time, so that what is computed of sizes alone counts. KnownSizes leaves that to the compiler;
// in a model in use only the number of tokens varies. RunTimeSizes takes all others.
#ifndef RESIDENT_CUH
#define RESIDENT_CUH

#include "../include/divisor.cuh"
#include "bulk.cuh"
#include "projection.cuh"

constexpr int RESIDENT_THREADS = 256, RESIDENT_LANES = 32, QUAD = 4;

template <int MODEL, int RANK, int WIDTH>
struct KnownSizes {
  static constexpr int model = MODEL, rank = RANK, width = WIDTH, UNROLL = 8;
  static __device__ int divide(int n, int divisor) { return n / divisor; }
};

struct RunTimeSizes {
  int model, rank, width;
  static constexpr int UNROLL = 1;
  static __device__ int divide(int n, int divisor) { return Divisor(divisor).quotient(n); }
};

// Where things are in shared memory, in floats.
template <int TOKENS, typename Sizes>
struct Residence {
  int64_t down, up_k, up_v, partial, latent, arrivals, end;  // the tile of hidden is at 0

  __host__ __device__ constexpr explicit Residence(const Sizes &sizes)
      : down(aligned(int64_t(TOKENS) * sizes.model)),              // [m][r]
        up_k(down + aligned(int64_t(sizes.model) * sizes.rank)),   // [r][c]
        up_v(up_k + aligned(int64_t(sizes.rank) * sizes.width)),
        partial(up_v + aligned(int64_t(sizes.rank) * sizes.width)),
        latent(partial + TOKENS * RESIDENT_THREADS * QUAD),        // behind [token][part][column]
        arrivals(latent + aligned(TOKENS * sizes.rank)),           // behind [token][r]
        end(arrivals + 3 * int(sizeof(Arrival) / sizeof(float))) {}

  static __host__ __device__ constexpr int64_t aligned(int64_t floats) {
    return (floats + 31) / 32 * 32;
  }
};

// A product with `columns` columns: quads of them, and threads that share the terms of their sums.
// A thread has rows 4 x part to 4 x part + 3 of each 4 x parts; those left over have part == parts.
template <typename Sizes>
struct Product {
  int quads, parts, part, column;

  __device__ explicit Product(int columns)
      : quads(columns / QUAD),
        parts(Sizes::divide(RESIDENT_THREADS, quads)),
        part(Sizes::divide(threadIdx.x, quads)),
        column((threadIdx.x - part * quads) * QUAD) {}

  // partial[token][part][column] = sum over the part's k of x[token][k] * weights[k][column].
  // `weights` points to the thread's own column.
  template <int TOKENS>
  __device__ void multiply(const float *x, const float *weights, int depth, int stride,
                           float4 *partial) const {
    if (part >= parts) return;
    float4 sum[TOKENS] = {};
#pragma unroll 1
    for (int k = part * QUAD; k < depth; k += parts * QUAD)
      add_rows<TOKENS>(x + k, depth, weights + k * stride, stride, sum);
#pragma unroll
    for (int token = 0; token < TOKENS; ++token)
      partial[token * RESIDENT_THREADS + threadIdx.x] = sum[token];
  }

  template <int TOKENS>
  static __device__ void add_rows(const float *x, int x_stride, const float *weights, int stride,
                                  float4 *sum) {
    float4 row[QUAD];
#pragma unroll
    for (int i = 0; i < QUAD; ++i)
      row[i] = *reinterpret_cast<const float4 *>(weights + i * stride);
#pragma unroll
    for (int token = 0; token < TOKENS; ++token) {
      const float4 along = *reinterpret_cast<const float4 *>(x + token * x_stride);
      const float factor[QUAD] = {along.x, along.y, along.z, along.w};
#pragma unroll
      for (int i = 0; i < QUAD; ++i) {
        sum[token].x += factor[i] * row[i].x;
        sum[token].y += factor[i] * row[i].y;
        sum[token].z += factor[i] * row[i].z;
        sum[token].w += factor[i] * row[i].w;
      }
    }
  }

  // to[token][quad] = the sum over the quad's parts, for the first `tokens` tokens. Lanes of a warp
  // share a quad where there are threads enough, so that no two of them read from one bank.
  template <int TOKENS>
  __device__ void add_parts(const float4 *partial, int tokens, float4 *to) const {
    const int shares = shares_of(TOKENS * quads), among = RESIDENT_LANES / shares;
    const int lane = threadIdx.x % RESIDENT_LANES, share = lane / among;
    const int first = threadIdx.x / RESIDENT_LANES * among;
#pragma unroll 1
    for (int from = first; from < TOKENS * quads; from += RESIDENT_THREADS / shares) {
      const int i = from + lane % among, token = Sizes::divide(i, quads);
      const float4 *term = partial + token * RESIDENT_THREADS + i - token * quads;
      float4 total = {};
      if (token < tokens)
#pragma unroll Sizes::UNROLL
        for (int part = share; part < parts; part += shares) total = sum(total, term[part * quads]);
#pragma unroll Sizes::UNROLL
      for (int bit = among; bit < RESIDENT_LANES; bit *= 2)
        total = sum(total, from_lane(total, bit));
      if (share == 0 && token < tokens) to[i] = total;
    }
  }

  // How many lanes share each of `count` sums: a power of two.
  static __device__ constexpr int shares_of(int count) {
    int shares = 1;
    while (shares < RESIDENT_LANES && 2 * shares * count <= RESIDENT_THREADS) shares *= 2;
    return shares;
  }

  static __device__ float4 sum(float4 a, float4 b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
  }

  // What the lane has whose number differs in one bit.
  static __device__ float4 from_lane(float4 own, int bit) {
    const auto other = [bit](float value) { return __shfl_xor_sync(~0u, value, bit); };
    return {other(own.x), other(own.y), other(own.z), other(own.w)};
  }
};

template <typename Sizes, int TOKENS>
__global__ void __launch_bounds__(RESIDENT_THREADS, 1) resident(Projection p, Sizes sizes) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) float residence[];
  const Residence<TOKENS, Sizes> at(sizes);
  float *hidden = residence, *latent = residence + at.latent;
  float4 *partial = reinterpret_cast<float4 *>(residence + at.partial);
  Arrival *tile_there = reinterpret_cast<Arrival *>(residence + at.arrivals);
  Arrival *down_there = tile_there + 1, *up_there = tile_there + 2;

  const auto start_tile = [&](int64_t first) {
    const int tokens = int(min(int64_t(TOKENS), p.tokens - first));
    const int bytes = tokens * sizes.model * int(sizeof(float));
    expect(tile_there, bytes);
    start_copy(hidden, p.hidden + first * sizes.model, bytes, tile_there);
  };
  const int64_t stride = int64_t(gridDim.x) * TOKENS;
  int64_t first = int64_t(blockIdx.x) * TOKENS;
  if (threadIdx.x == 0) {
    const int down_bytes = sizes.model * sizes.rank * int(sizeof(float));
    const int up_bytes = sizes.rank * sizes.width * int(sizeof(float));
    for (int i = 0; i < 3; ++i) open_arrival(tile_there + i);
    show_arrivals();
    start_tile(first);
    expect(down_there, down_bytes);
    start_copy(residence + at.down, p.w_down, down_bytes, down_there);
    expect(up_there, 2 * up_bytes);
    start_copy(residence + at.up_k, p.w_up_k, up_bytes, up_there);
    start_copy(residence + at.up_v, p.w_up_v, up_bytes, up_there);
  }
  const Product<Sizes> down(sizes.rank), up(2 * sizes.width);
  const float *w_down = residence + at.down + down.column;
  const float *w_up = up.column < sizes.width ? residence + at.up_k + up.column
                                              : residence + at.up_v + up.column - sizes.width;
  __syncthreads();

#pragma unroll 1
  for (int parity = 0;; parity ^= 1) {
    await(tile_there, parity);
    await(down_there, 0);
    down.template multiply<TOKENS>(hidden, w_down, sizes.model, sizes.rank, partial);
    __syncthreads();
    if (threadIdx.x == 0 && first + stride < p.tokens) start_tile(first + stride);
    down.template add_parts<TOKENS>(partial, TOKENS, reinterpret_cast<float4 *>(latent));
    __syncthreads();
    await(up_there, 0);
    up.template multiply<TOKENS>(latent, w_up, sizes.rank, sizes.width, partial);
    __syncthreads();
    up.template add_parts<TOKENS>(partial, int(min(int64_t(TOKENS), p.tokens - first)),
                                  reinterpret_cast<float4 *>(p.out + first * 2 * sizes.width));
    first += stride;
    if (first >= p.tokens) return;
    __syncthreads();
  }
#endif
}

#endif
