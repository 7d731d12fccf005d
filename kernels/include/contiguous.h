// For variants that read row-major memory only: a check that names the input that is not.
#ifndef CONTIGUOUS_H
#define CONTIGUOUS_H

#include "perfci.h"

// `names` has a name an input.
inline int check_contiguous(const perfci_call *call, const char *const *names) {
  for (int input = 0; input < call->input_count; ++input)
    if (!perfci_is_contiguous(&call->inputs[input]))
      return perfci_fail(call, "%s must be contiguous", names[input]);
  return 0;
}

#endif
