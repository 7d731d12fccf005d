// Wrong: right output, and one element more behind its end.
#include "../serial.cuh"

__global__ void write(float *element) { *element = 0.0f; }

extern "C" int perfci_run(const perfci_call *call) {
  Projection p{};
  if (int code = read_projection(call, &p)) return code;
  if (int code = run_serial<Float32, float>(call)) return code;
  return perfci_launch(call, {1, 1, 0}, write, p.out + p.tokens * 2 * p.width);
}
