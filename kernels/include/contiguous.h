// For variants that read row-major memory only: a check that names the input that is not.
#ifndef CONTIGUOUS_H
#define CONTIGUOUS_H

#include "arguments.h"

// `names` has a name an input.
inline int check_inputs_contiguous(const perfci_call *call, const char *const *names) {
  for (int input = 0; input < call->input_count; ++input)
    if (int code = check_contiguous(call, names[input], call->inputs[input])) return code;
  return 0;
}

#endif
