// Several tokens a block, so that a weight that was read once serves all of them.
//
// The latent never goes through memory. `resident` (compute capability 9.0 and later) is for weights
// that fit into a block's shared memory: a block copies them there once, all at once, and stays for
// all its tiles of tokens, 3 where that is enough to give each tile a multiprocessor, else 8.
// Traffic: the weights once a block from the second-level cache, hidden and the output once. Limits:
// rank, model and width multiples of 4, tensors 16-byte aligned, rank and 2 x width at most 1024, and
// weights, tile and partial sums in shared memory: up to some 200 KB of weights.
//
// `streamed` takes what is left: 4 or 32 tokens a block, weights read where they lie, through the
// first-level cache, hidden in chunks. Traffic: the weights once a block from the second-level cache.
// Limit: the latent of a tile, 16 to 128 bytes x rank, in shared memory.
#include <algorithm>

#include "resident.cuh"
#include "streamed.cuh"

static bool are_aligned(std::initializer_list<const float *> pointers) {
  for (const float *pointer : pointers)
    if (reinterpret_cast<uintptr_t>(pointer) % sizeof(float4) != 0) return false;
  return true;
}

static bool can_be_resident(const Projection &p) {
  constexpr int MOST_COLUMNS = RESIDENT_THREADS * QUAD;
  if (perfci_device_attribute(cudaDevAttrComputeCapabilityMajor) < 9) return false;
  if (p.rank == 0 || p.model == 0 || p.rank > MOST_COLUMNS || 2 * p.width > MOST_COLUMNS)
    return false;
  return p.rank % QUAD == 0 && p.model % QUAD == 0 && p.width % QUAD == 0 &&
         are_aligned({p.hidden, p.w_down, p.w_up_k, p.w_up_v, p.out});
}

static bool fits_shared(int64_t floats) {
  return floats * int64_t(sizeof(float)) <=
         perfci_device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

template <int TOKENS>
static bool fits_resident(const RunTimeSizes &sizes) {
  return fits_shared(Residence<TOKENS, RunTimeSizes>(sizes).end);
}

template <int TOKENS, typename Sizes>
static int run_resident(const perfci_call *call, const Projection &p, const Sizes &sizes,
                        int64_t processors) {
  const int64_t tiles = (p.tokens + TOKENS - 1) / TOKENS;
  const int64_t bytes = Residence<TOKENS, Sizes>(sizes).end * int64_t(sizeof(float));
  return perfci_launch(call, {tiles < processors ? tiles : processors, RESIDENT_THREADS, bytes},
                       resident<Sizes, TOKENS>, p, sizes);
}

template <int TOKENS>
static int run_resident(const perfci_call *call, const Projection &p, const RunTimeSizes &sizes,
                        int64_t processors) {
  using Headline = KnownSizes<256, 48, 128>;
  if (p.model == Headline::model && p.rank == Headline::rank && p.width == Headline::width)
    return run_resident<TOKENS, Headline>(call, p, Headline{}, processors);
  return run_resident<TOKENS, RunTimeSizes>(call, p, sizes, processors);
}

template <int TOKENS>
static int64_t streamed_floats(const Projection &p) {
  return PARTIAL + (int64_t(CHUNK) + p.rank) * TOKENS;
}

template <int TOKENS>
static int run_streamed(const perfci_call *call, const Projection &p) {
  // Four columns of each weight and of the output can be read and written at once.
  const bool aligned = are_aligned({p.w_down, p.w_up_k, p.w_up_v, p.out}) && p.rank % SIDE == 0 &&
                       p.width % SIDE == 0;
  const int64_t bytes = streamed_floats<TOKENS>(p) * int64_t(sizeof(float));
  return perfci_launch(
      call, {(p.tokens + TOKENS - 1) / TOKENS, THREADS, bytes, 1, "rank"},
      aligned ? streamed<TOKENS, true> : streamed<TOKENS, false>, p);
}

extern "C" int perfci_run(const perfci_call *call) {
  constexpr int FEW = 3, MANY = 8;
  Projection p{};
  if (int code = read_projection(call, &p)) return code;
  const int64_t processors = std::max(perfci_device_attribute(cudaDevAttrMultiProcessorCount), 1);
  const RunTimeSizes sizes{p.model, p.rank, p.width};
  if (can_be_resident(p)) {
    if (p.tokens <= FEW * processors && fits_resident<FEW>(sizes))
      return run_resident<FEW>(call, p, sizes, processors);
    if (fits_resident<MANY>(sizes)) return run_resident<MANY>(call, p, sizes, processors);
  }
  // Large tiles read the weights less often, once there are enough for every multiprocessor.
  if (p.tokens >= 32 * processors && fits_shared(streamed_floats<32>(p)))
    return run_streamed<32>(call, p);
  return run_streamed<4>(call, p);
}
