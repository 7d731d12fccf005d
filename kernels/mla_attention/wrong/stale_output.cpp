// Wrong: writes nothing; what the output's memory holds is taken for the answer.
#include "../shape.h"

extern "C" int perfci_run(const perfci_call *call) {
  Shape shape{};
  return read_shape(call, &shape);
}
