// Both products by blocks that hold all weights in shared memory.
//
// A block takes tiles of TOKENS tokens, one after another. One thread starts the copies of the first
// tile and of all weights at once; each matrix comes in CHUNKS deliveries, in the order of use, and
// is multiplied as it arrives, so the first product is over before the last of w_up is there. A
// thread sums TOKENS tokens x 4 columns over 4 rows at a time and reads a weight once for all
// tokens; threads that share a sum's rows leave their parts in shared memory, where one thread adds
// up two elements. The latent never leaves the block.
//
// Time at the headline shape, estimated and not measured, of what cannot be hidden: the launch; one
// latency of the second-level cache; 99 KB a block of weights through it, with 128 blocks wanting
// the same at the same time, by far the largest; then the second half of the second product (a
// quarter of the multiply-adds), two passes over its parts in shared memory, and the store.
#ifndef RESIDENT_CUH
#define RESIDENT_CUH

#include "../include/divisor.cuh"
#include "bulk.cuh"
#include "projection.cuh"

constexpr int RESIDENT_THREADS = 384, CHUNKS = 2, QUAD = 4;

// Rows of a chunk of a matrix of `depth` rows, a multiple of 4: of all but the last, which has less.
__host__ __device__ constexpr int chunk_rows(int depth) {
  return (depth / QUAD + CHUNKS - 1) / CHUNKS * QUAD;
}

// Where things are in shared memory, in floats.
template <int TOKENS>
struct Residence {
  int64_t hidden, down, up_k, up_v, latent, partial, arrivals, end;

  explicit Residence(const Projection &p) {
    hidden = 0;                                            // [token][m]
    down = int64_t(TOKENS) * p.model;                      // [m][r]
    up_k = down + int64_t(p.model) * p.rank;               // [r][c]
    up_v = up_k + int64_t(p.rank) * p.width;
    latent = up_v + int64_t(p.rank) * p.width;             // [token][r]
    partial = latent + TOKENS * p.rank;                    // [token][part][column]
    arrivals = partial + TOKENS * RESIDENT_THREADS * QUAD; // of the tile, of w_down, of w_up
    end = arrivals + (1 + 2 * CHUNKS) * int(sizeof(Arrival) / sizeof(float));
  }
};

// What a thread does of a product with `columns` columns: four of them, rows 4 x part to
// 4 x part + 3 of each 4 x parts. Threads that are left over have part == parts.
struct Place {
  int columns, parts, part, column;

  __device__ explicit Place(int columns) : columns(columns) {
    const int quads = columns / QUAD;
    const Divisor by_quads(quads);
    parts = by_quads.quotient(RESIDENT_THREADS);
    part = by_quads.quotient(threadIdx.x);
    column = (threadIdx.x - part * quads) * QUAD;
  }

  // partial[token][part][column] = sum over the part's k of x[token][k] * weights[k][column]; the
  // chunks of weights are awaited. `weights` points to the thread's own column.
  template <int TOKENS>
  __device__ void multiply(const float *x, const float *weights, int depth, int stride,
                           Arrival *arrivals, float *partial) const {
    if (part >= parts) return;
    float4 sum[TOKENS] = {};
    const int rows = chunk_rows(depth);
#pragma unroll 1
    for (int chunk = 0; chunk < CHUNKS; ++chunk) {
      await(arrivals + chunk, 0);
      const int end = min((chunk + 1) * rows, depth);
#pragma unroll 1
      for (int k = chunk * rows + part * QUAD; k < end; k += parts * QUAD)
        add_rows<TOKENS>(x + k, depth, weights + k * stride, stride, sum);
    }
#pragma unroll
    for (int token = 0; token < TOKENS; ++token)
      reinterpret_cast<float4 *>(partial)[token * RESIDENT_THREADS + threadIdx.x] = sum[token];
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

  // Call body(token * columns + column, the sums of two columns over all parts) for the first
  // `tokens` tokens.
  template <typename Body>
  __device__ void add_parts(const float *partial, int tokens, const Body &body) const {
    constexpr int BATCH = 6;  // terms read at once; beyond the last, the last again
    const Divisor by_columns(columns);
#pragma unroll 1
    for (int i = 2 * threadIdx.x; i < tokens * columns; i += 2 * RESIDENT_THREADS) {
      const int token = by_columns.quotient(i);
      const float *term = partial + token * RESIDENT_THREADS * QUAD + i - token * columns;
      float2 total = {0.0f, 0.0f};
#pragma unroll 1
      for (int left = parts; left > 0; left -= BATCH) {
        float2 next[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
          next[j] = *reinterpret_cast<const float2 *>(term);
          if (j + 1 < left) term += columns;
        }
#pragma unroll
        for (int j = 0; j < BATCH; ++j)
          if (j < left) total = make_float2(total.x + next[j].x, total.y + next[j].y);
      }
      body(i, total);
    }
  }
};

// Start the copies of one matrix; `second`, where there is one, comes along with it.
__device__ inline void start_matrix(const float *first, const float *second, int depth, int columns,
                                    float *to_first, float *to_second, Arrival *arrivals) {
  const int rows = chunk_rows(depth);
  for (int chunk = 0; chunk < CHUNKS; ++chunk) {
    const int from = chunk * rows * columns;
    const int bytes = (min((chunk + 1) * rows, depth) - chunk * rows) * columns * int(sizeof(float));
    expect(arrivals + chunk, bytes > 0 ? (second ? 2 : 1) * bytes : 0);
    if (bytes <= 0) continue;
    start_copy(to_first + from, first + from, bytes, arrivals + chunk);
    if (second) start_copy(to_second + from, second + from, bytes, arrivals + chunk);
  }
}

// Start the copy of the tile of tokens from `first` on.
template <int TOKENS>
__device__ void start_tile(const Projection &p, int64_t first, float *to, Arrival *arrival) {
  const int bytes = int(min(int64_t(TOKENS), p.tokens - first)) * p.model * int(sizeof(float));
  expect(arrival, bytes);
  if (bytes > 0) start_copy(to, p.hidden + first * p.model, bytes, arrival);
}

template <int TOKENS>
__global__ void __launch_bounds__(RESIDENT_THREADS, 1) resident(Projection p, Residence<TOKENS> at) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) float shared[];
  float *hidden = shared + at.hidden, *latent = shared + at.latent, *partial = shared + at.partial;
  Arrival *tile_there = reinterpret_cast<Arrival *>(shared + at.arrivals);
  Arrival *down_there = tile_there + 1, *up_there = down_there + CHUNKS;
  const int64_t stride = int64_t(gridDim.x) * TOKENS;
  int64_t first = int64_t(blockIdx.x) * TOKENS;
  if (threadIdx.x == 0) {
    for (int i = 0; i < 1 + 2 * CHUNKS; ++i) open_arrival(tile_there + i);
    show_arrivals();
    start_tile<TOKENS>(p, first, hidden, tile_there);
    start_matrix(p.w_down, nullptr, p.model, p.rank, shared + at.down, nullptr, down_there);
    start_matrix(p.w_up_k, p.w_up_v, p.rank, p.width, shared + at.up_k, shared + at.up_v, up_there);
  }
  const Place down(p.rank), up(2 * p.width);
  const float *w_down = shared + at.down + down.column;
  const float *w_up = up.column < p.width ? shared + at.up_k + up.column
                                          : shared + at.up_v + up.column - p.width;
  __syncthreads();

#pragma unroll 1
  for (int parity = 0; first < p.tokens; first += stride, parity ^= 1) {
    await(tile_there, parity);
    down.multiply<TOKENS>(hidden, w_down, p.model, p.rank, down_there, partial);
    __syncthreads();
    if (threadIdx.x == 0 && first + stride < p.tokens)
      start_tile<TOKENS>(p, first + stride, hidden, tile_there);
    down.add_parts(partial, TOKENS, [&](int i, float2 total) {
      *reinterpret_cast<float2 *>(latent + i) = total;
    });
    __syncthreads();
    up.multiply<TOKENS>(latent, w_up, p.rank, p.width, up_there, partial);
    __syncthreads();
    float *out = p.out + first * 2 * p.width;
    up.add_parts(partial, int(min(int64_t(TOKENS), p.tokens - first)), [&](int i, float2 total) {
      __stwb(reinterpret_cast<float2 *>(out + i), total);  // a plain store would be split in two
    });
    __syncthreads();
  }
#endif
}

#endif
