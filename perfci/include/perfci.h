/* The calling convention of perfci's kernels: one C symbol, the same for every kernel.
 *
 * A variant's source includes this header and defines
 *
 *     extern "C" int perfci_run(const perfci_call *call) { ... }
 *
 * Outputs are allocated by the caller with the reference's shape and dtype, row-major and
 * contiguous. Inputs and scalars come in the order of the reference's make_inputs. Strides count
 * elements, not bytes. On a GPU, work goes to `stream` (a cudaStream_t); on a CPU it is NULL.
 * Return 0, or what perfci_fail returns after it has written the reason into the error buffer.
 */
#ifndef PERFCI_H
#define PERFCI_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#define PERFCI_ABI_VERSION 1

enum perfci_dtype {
  PERFCI_FLOAT32 = 0,
  PERFCI_FLOAT64 = 1,
  PERFCI_FLOAT16 = 2,
  PERFCI_BFLOAT16 = 3,
  PERFCI_INT8 = 4,
  PERFCI_INT16 = 5,
  PERFCI_INT32 = 6,
  PERFCI_INT64 = 7,
  PERFCI_UINT8 = 8,
  PERFCI_BOOL = 9
};

typedef struct perfci_tensor {
  void *data;
  const int64_t *shape;
  const int64_t *strides;
  int32_t rank;
  int32_t dtype;
} perfci_tensor;

/* A scalar argument: both readings are filled in, take the one that the argument means. */
typedef struct perfci_scalar {
  int64_t integer;
  double real;
} perfci_scalar;

typedef struct perfci_call {
  int32_t abi_version;
  int32_t output_count;
  int32_t input_count;
  int32_t scalar_count;
  const perfci_tensor *outputs;
  const perfci_tensor *inputs;
  const perfci_scalar *scalars;
  void *stream;
  char *error;
  int64_t error_size;
} perfci_call;

#ifdef __cplusplus
extern "C" {
#endif

int perfci_run(const perfci_call *call);

#ifdef __cplusplus
}
#endif

/* Write why the call cannot be done, printf-style, and return the code for it. */
static inline int perfci_fail(const perfci_call *call, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(call->error, (size_t)call->error_size, format, arguments);
  va_end(arguments);
  return 1;
}

/* Whether a tensor is row-major without gaps; a dimension of size 1 may have any stride, and a
 * tensor without elements has none. */
static inline int perfci_is_contiguous(const perfci_tensor *tensor) {
  int64_t expected = 1;
  for (int32_t d = 0; d < tensor->rank; ++d) {
    if (tensor->shape[d] == 0) return 1;
  }
  for (int32_t d = tensor->rank - 1; d >= 0; --d) {
    if (tensor->shape[d] != 1 && tensor->strides[d] != expected) return 0;
    expected *= tensor->shape[d];
  }
  return 1;
}

#endif
