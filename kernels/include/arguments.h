// Checks of a call's arguments; each returns 0, or the code of perfci_fail.
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "perfci.h"

inline int check_tensor(const perfci_call *call, const char *name, const perfci_tensor &tensor,
                        int rank) {
  if (tensor.dtype != PERFCI_FLOAT32) return perfci_fail(call, "%s must be float32", name);
  if (tensor.rank != rank)
    return perfci_fail(call, "%s has %d dimensions, must have %d", name, (int)tensor.rank, rank);
  if (reinterpret_cast<uintptr_t>(tensor.data) % sizeof(float) != 0)
    return perfci_fail(call, "%s must be aligned to %d bytes", name, (int)sizeof(float));
  return 0;
}

inline int check_size(const perfci_call *call, const char *name, const perfci_tensor &tensor,
                      int dimension, int64_t expected) {
  if (tensor.shape[dimension] == expected) return 0;
  return perfci_fail(call, "%s has size %lld in dimension %d, must have %lld", name,
                     (long long)tensor.shape[dimension], dimension, (long long)expected);
}

// For variants that read or write row-major memory only.
inline int check_contiguous(const perfci_call *call, const char *name,
                            const perfci_tensor &tensor) {
  return perfci_is_contiguous(&tensor) ? 0 : perfci_fail(call, "%s must be contiguous", name);
}

inline int check_at_most(const perfci_call *call, const char *name, int64_t size, int64_t most) {
  if (size <= most) return 0;
  return perfci_fail(call, "%s is %lld, at most %lld", name, (long long)size, (long long)most);
}

// A scalar that is a size.
inline int check_count(const perfci_call *call, const char *name, const perfci_scalar &scalar) {
  if (scalar.real != (double)scalar.integer)
    return perfci_fail(call, "%s is %g, must be an integer", name, scalar.real);
  if (scalar.integer < 0)
    return perfci_fail(call, "%s is %lld, must not be negative", name, (long long)scalar.integer);
  return 0;
}

// Whether a tensor has no elements: nothing to be computed, whatever the other sizes are.
inline bool is_empty(const perfci_tensor &tensor) {
  for (int d = 0; d < tensor.rank; ++d)
    if (tensor.shape[d] == 0) return true;
  return false;
}

#endif
