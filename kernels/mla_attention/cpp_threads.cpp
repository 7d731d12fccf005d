// perfci: flags = ["-march=native", "-pthread", "-Wl,-z,nodelete"]
//
// One head of one batch a task, every step a product of tiles in registers.
//
// Keys (transposed) and values of the head are formed in the layout in which the next product reads
// them. A few queries at a time then multiply the keys that they may see, take the softmax in place
// and multiply the values; the whole row of weights is kept, so that there is no rescaling. Traffic:
// q read once, the output written once, latents read once a head, keys and values stay in cache for
// short sequences. Takes any strides; needs memory for a head's keys and values a thread, and has
// no more parallelism than batch x heads. A few microseconds of work stay on one thread.
#include <atomic>
#include <vector>

#include "../include/parallel.h"
#include "../include/product.h"
#include "shape.h"
#include "softmax.h"

static const float *start(const perfci_tensor &tensor, int64_t first, int64_t second) {
  return static_cast<const float *>(tensor.data) + first * tensor.strides[0] +
         second * tensor.strides[1];
}

static std::vector<const float *> row_pointers(const float *first, int64_t stride, int64_t count) {
  std::vector<const float *> rows(count);
  for (int64_t i = 0; i < count; ++i) rows[i] = first + i * stride;
  return rows;
}

// The head's keys, transposed: head_dim x sequence.
static Panels keys_of(const perfci_tensor &kv_latent, const perfci_tensor &w_up_k, int64_t b,
                      int64_t h, const Shape &shape) {
  const int64_t *latent = kv_latent.strides, *up = w_up_k.strides;
  const Panels transposed =
      prepare({start(kv_latent, b, 0), latent[2], latent[1]}, shape.rank, shape.sequence);
  const auto rows = row_pointers(start(w_up_k, 0, h), up[2], shape.head_dim);
  return panel_product({rows.data(), shape.head_dim, up[0]}, shape.rank, transposed,
                       shape.sequence);
}

// The head's values: sequence x head_dim.
static Panels values_of(const perfci_tensor &kv_latent, const perfci_tensor &w_up_v, int64_t b,
                        int64_t h, const Shape &shape) {
  const int64_t *latent = kv_latent.strides, *up = w_up_v.strides;
  const Panels weight = prepare({start(w_up_v, 0, h), up[0], up[2]}, shape.rank, shape.head_dim);
  const auto rows = row_pointers(start(kv_latent, b, 0), latent[1], shape.sequence);
  return panel_product({rows.data(), shape.sequence, latent[2]}, shape.rank, weight,
                       shape.head_dim);
}

static void attend(const perfci_call *call, int64_t b, int64_t h, const Shape &shape) {
  const perfci_tensor &q = call->inputs[0], &kv_latent = call->inputs[1];
  const Panels keys = keys_of(kv_latent, call->inputs[2], b, h, shape);
  const Panels values = values_of(kv_latent, call->inputs[3], b, h, shape);
  const float scale = 1.0f / std::sqrt(float(shape.head_dim));
  const int64_t row_length = rounded_up(shape.sequence, LANES), width = shape.heads * shape.head_dim;
  const Buffer weights = buffer(ROWS, row_length);
  float *out = static_cast<float *>(call->outputs[0].data) + b * shape.sequence * width +
               h * shape.head_dim;

  for (int64_t first = 0; first < shape.sequence; first += ROWS) {
    const int64_t count = std::min<int64_t>(ROWS, shape.sequence - first), seen = first + count;
    const float *queries[ROWS], *weight_rows[ROWS];
    for (int64_t i = 0; i < count; ++i) {
      queries[i] = start(q, b, first + i) + h * q.strides[2];
      weight_rows[i] = weights.get() + i * row_length;
    }
    product({queries, count, q.strides[3]}, shape.head_dim, keys, seen, weights.get(), row_length);
    for (int64_t i = 0; i < count; ++i)
      softmax(weights.get() + i * row_length, first + i + 1, rounded_up(seen, LANES), scale);
    product({weight_rows, count, 1}, seen, values, shape.head_dim, out + first * width, width);
  }
}

extern "C" int perfci_run(const perfci_call *call) {
  Shape shape{};
  if (int code = read_shape(call, &shape)) return code;
  if (shape.batch == 0) return 0;
  const int64_t tasks = shape.batch * shape.heads;
  const double work = double(tasks) * shape.sequence * shape.head_dim *
                      (2 * double(shape.rank) + shape.sequence);
  std::atomic<bool> out_of_memory{false};
  const auto attend_task = [&](int64_t task) {
    try {
      attend(call, task / shape.heads, task % shape.heads, shape);
    } catch (const std::bad_alloc &) {
      out_of_memory = true;  // nothing may leave a thread
    }
  };
  try {
    parallel_for(tasks, threads_for(work), attend_task);
  } catch (const std::bad_alloc &) {
    out_of_memory = true;
  }
  if (out_of_memory)
    return perfci_fail(call, "out of memory for the keys and values of %lld positions",
                       (long long)shape.sequence);
  return 0;
}
