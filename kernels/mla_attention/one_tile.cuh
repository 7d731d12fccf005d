// Attention on the latents where a sequence is one tile: at most 32 positions, and rank 32.
//
// Made for latency: a warp a query, and no loop whose length the compiler does not know. All reads
// of memory start at once: a warp's query and both weight slices go to its registers, a row of
// head_dim over HEAD_DIM / 4 lanes; the batch's latents go to shared memory, for the four warps of a
// block. The positions that are not read are zero. Between the steps, values change lanes through 32
// floats a warp: the folded query (to all lanes), the weights (to all), the weighted latent (to the
// lanes that have its rows of w_up_v).
#ifndef ONE_TILE_CUH
#define ONE_TILE_CUH

#include <cuda_pipeline.h>

#include "../include/divisor.cuh"
#include "attention.cuh"
#include "warp.cuh"

constexpr int ONE_TILE_WARPS = 4, ONE_TILE_THREADS = ONE_TILE_WARPS * LANES;

__device__ inline float dot(float4 a, float4 b) {
  return (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w);
}

// A lane's share of a (rank, HEAD_DIM) weight slice: four columns of every ROWS-th row.
template <int HEAD_DIM>
struct Slice {
  static constexpr int PER_ROW = HEAD_DIM / 4, ROWS = LANES / PER_ROW, STEPS = LANES / ROWS;
  float4 part[STEPS];

  static __device__ int first_row() { return threadIdx.x % LANES / PER_ROW; }
  static __device__ int quad() { return threadIdx.x % PER_ROW; }

  __device__ Slice(const float *slice, int rank, int64_t stride) {
#pragma unroll
    for (int j = 0; j < STEPS; ++j) {
      const int r = first_row() + j * ROWS;
      part[j] = {0.0f, 0.0f, 0.0f, 0.0f};
      if (r < rank) part[j] = *reinterpret_cast<const float4 *>(slice + r * stride + 4 * quad());
    }
  }

  // folded[r] = query . row r, zero beyond rank; `query` is the lane's four columns of it.
  __device__ void fold(float4 query, float *folded) const {
#pragma unroll
    for (int j = 0; j < STEPS; ++j) {
      float sum = dot(query, part[j]);
#pragma unroll
      for (int mask = 1; mask < PER_ROW; mask *= 2) sum += __shfl_xor_sync(ALL, sum, mask);
      if (quad() == 0) folded[first_row() + j * ROWS] = sum;
    }
  }

  // The lane's four columns of the sum over r of weights[r] * row r.
  __device__ float4 combine(const float *weights) const {
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int j = 0; j < STEPS; ++j) {
      const float weight = weights[first_row() + j * ROWS];
      sum = make_float4(sum.x + weight * part[j].x, sum.y + weight * part[j].y,
                        sum.z + weight * part[j].z, sum.w + weight * part[j].w);
    }
#pragma unroll
    for (int mask = PER_ROW; mask < LANES; mask *= 2)
      sum = make_float4(sum.x + __shfl_xor_sync(ALL, sum.x, mask),
                        sum.y + __shfl_xor_sync(ALL, sum.y, mask),
                        sum.z + __shfl_xor_sync(ALL, sum.z, mask),
                        sum.w + __shfl_xor_sync(ALL, sum.w, mask));
    return sum;
  }
};

// Copy the first `positions` latents, asynchronously, and set the rest of the tile to zero.
__device__ inline void load_latents(const float *from, int positions, int rank, float *to) {
  constexpr int MOST = LANES * LANES / 4;
#pragma unroll
  for (int start = 0; start < MOST; start += ONE_TILE_THREADS) {
    const int i = 4 * (start + threadIdx.x);
    if (i < positions * rank)
      __pipeline_memcpy_async(to + i, from + i, sizeof(float4));
    else
      *reinterpret_cast<float4 *>(to + i) = {0.0f, 0.0f, 0.0f, 0.0f};
  }
  __pipeline_commit();
}

// folded . latent, for the lane's position; beyond rank, where folded is zero, goes the next latent.
__device__ inline float logit_of_lane(const float *folded, const float *latents, int rank) {
  const float *own = latents + threadIdx.x % LANES * rank;
  float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
  for (int r = 0; r < LANES; r += 4) {
    const float4 f = *reinterpret_cast<const float4 *>(folded + r);
    const float4 x = *reinterpret_cast<const float4 *>(own + r);
    sum = make_float4(sum.x + f.x * x.x, sum.y + f.y * x.y, sum.z + f.z * x.z, sum.w + f.w * x.w);
  }
  return (sum.x + sum.y) + (sum.z + sum.w);
}

// The sum over the positions of weights * latent, for the lane's element of the latent.
__device__ inline float weighted_of_lane(const float *weights, const float *latents, int rank) {
  const float *column = latents + threadIdx.x % LANES;
  float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
  for (int s = 0; s < LANES; s += 4) {
    const float4 w = *reinterpret_cast<const float4 *>(weights + s);
    sum = make_float4(sum.x + w.x * column[s * rank], sum.y + w.y * column[(s + 1) * rank],
                      sum.z + w.z * column[(s + 2) * rank], sum.w + w.w * column[(s + 3) * rank]);
  }
  return (sum.x + sum.y) + (sum.z + sum.w);
}

template <int HEAD_DIM>
__global__ void __launch_bounds__(ONE_TILE_THREADS) attend_one_tile(Attention a) {
  __shared__ __align__(16) float latents[LANES * LANES];  // [position][r]
  __shared__ __align__(16) float exchanged[ONE_TILE_WARPS][LANES];
  using Part = Slice<HEAD_DIM>;
  const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
  const int groups = (a.sequence + ONE_TILE_WARPS - 1) / ONE_TILE_WARPS;
  const int pair = Divisor(groups).quotient(blockIdx.x);
  const int batch = Divisor(a.heads).quotient(pair), head = pair - batch * a.heads;
  const int first = (blockIdx.x - pair * groups) * ONE_TILE_WARPS, t = first + warp;
  const int row = a.heads * HEAD_DIM, from = head * HEAD_DIM;
  const int64_t own = (int64_t(batch) * a.sequence + min(t, a.sequence - 1)) * row + from;

  load_latents(a.kv_latent + int64_t(batch) * a.sequence * a.rank,
               min(first + ONE_TILE_WARPS, a.sequence), a.rank, latents);
  float4 query = *reinterpret_cast<const float4 *>(a.q + own + 4 * Part::quad());
  const Part up_k(a.w_up_k + from, a.rank, row), up_v(a.w_up_v + from, a.rank, row);

  // Scaled before the logits are: they are compared and subtracted as they are.
  query = make_float4(query.x * a.scale, query.y * a.scale, query.z * a.scale, query.w * a.scale);
  float *values = exchanged[warp];
  up_k.fold(query, values);
  __pipeline_wait_prior(0);
  __syncthreads();
  const float logit = lane <= t ? logit_of_lane(values, latents, a.rank) : -INFINITY;
  const float weight = expf(logit - largest_of_warp(logit));
  __syncwarp();
  values[lane] = weight;
  __syncwarp();
  const float share = 1.0f / sum_of_warp(weight);
  const float weighted = weighted_of_lane(values, latents, a.rank) * share;
  __syncwarp();
  values[lane] = lane < a.rank ? weighted : 0.0f;
  __syncwarp();
  const float4 attended = up_v.combine(values);
  if (t < a.sequence && Part::first_row() == 0)
    __stwb(reinterpret_cast<float4 *>(a.out + own + 4 * Part::quad()), attended);
}

// Whether it can be taken: aligned for four floats at once, and few enough to count the blocks.
inline bool is_one_tile(const Attention &a) {
  for (const float *pointer : {a.q, a.kv_latent, a.w_up_k, a.w_up_v, (const float *)a.out})
    if (reinterpret_cast<uintptr_t>(pointer) % sizeof(float4) != 0) return false;
  return a.sequence <= LANES && a.rank <= LANES && a.rank % 4 == 0 &&
         (a.head_dim == 16 || a.head_dim == 32) && a.batch * a.heads * a.sequence < 1 << 20;
}

inline int run_one_tile(const perfci_call *call, const Attention &a) {
  const int64_t groups = (a.sequence + ONE_TILE_WARPS - 1) / ONE_TILE_WARPS;
  return perfci_launch(call, {a.batch * a.heads * groups, ONE_TILE_THREADS, 0},
                       a.head_dim == 16 ? attend_one_tile<16> : attend_one_tile<32>, a);
}

#endif
