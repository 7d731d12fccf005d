// Checks of a call's tensors; each returns 0, or the code of perfci_fail.
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "perfci.h"

inline int check_tensor(const perfci_call *call, const char *name,
                               const perfci_tensor &tensor, int rank) {
  if (tensor.dtype != PERFCI_FLOAT32) return perfci_fail(call, "%s must be float32", name);
  if (tensor.rank != rank)
    return perfci_fail(call, "%s has %d dimensions, must have %d", name, (int)tensor.rank, rank);
  return 0;
}

inline int check_size(const perfci_call *call, const char *name, const perfci_tensor &tensor,
                             int dimension, int64_t expected) {
  if (tensor.shape[dimension] == expected) return 0;
  return perfci_fail(call, "%s has size %lld in dimension %d, must have %lld", name,
                     (long long)tensor.shape[dimension], dimension, (long long)expected);
}

// A tensor without elements is contiguous whatever its strides say.
inline int check_contiguous(const perfci_call *call, const char *name,
                            const perfci_tensor &tensor) {
  for (int d = 0; d < tensor.rank; ++d)
    if (tensor.shape[d] == 0) return 0;
  return perfci_is_contiguous(&tensor) ? 0 : perfci_fail(call, "%s must be contiguous", name);
}

#endif
