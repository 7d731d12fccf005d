// Both products with weights that are read where they lie, through the first-level cache.
//
// A block takes TOKENS tokens, hidden in chunks. A thread sums a tile of 4 tokens x 4 columns; where
// there are fewer tiles than threads, threads share the terms of a tile's sums. The latent of the
// block's tokens stays in shared memory.
#ifndef STREAMED_CUH
#define STREAMED_CUH

#include <cuda_pipeline.h>

#include "../include/divisor.cuh"
#include "projection.cuh"

constexpr int THREADS = 256, LANES = 32, WARPS = THREADS / LANES;
constexpr int SIDE = 4;                         // of a thread's tile
constexpr int PARTIAL = THREADS * SIDE * SIDE;  // partial sums of all threads
constexpr int CHUNK = 256, PANEL = 128;         // of hidden, of columns

// What a thread does in a product of TOKENS tokens and some columns: tile (token, column), and of
// its terms number part, part + parts, ...; threads that are left over have part == parts.
template <int TOKENS>
struct Tile {
  int quads, parts, part, token, column;
  Divisor by_quads;

  __device__ explicit Tile(int columns)
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
      const Tile<TOKENS> tile(columns);
      tile.multiply(x, Global<ALIGNED>{w_down, p.rank, columns}, depth, partial);
      __syncthreads();
      tile.for_each_total(partial, [&](int token, int column, float4 total) {
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
      const Tile<TOKENS> tile(columns);
      tile.multiply(latent, Global<ALIGNED>{w_up, p.width, columns}, p.rank, partial);
      __syncthreads();
      tile.for_each_total(partial, [&](int token, int column, float4 total) {
        if (first + token >= p.tokens) return;
        float *out = p.out + (2 * (first + token) + slot) * p.width + c + column;
        const float sums[SIDE] = {total.x, total.y, total.z, total.w};
        if (ALIGNED) __stwb(reinterpret_cast<float4 *>(out), total);  // a plain one is split
        else
          for (int j = 0; j < SIDE && column + j < columns; ++j) out[j] = sums[j];
      });
      __syncthreads();
    }
  }
}

#endif
