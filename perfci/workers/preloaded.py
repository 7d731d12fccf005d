"""What the fork server imports last: it leaves to a worker neither NVML nor rubbish to look for.

PyTorch's compiler asks NVML for GPUs while it is imported and keeps it open. A worker is forked
with that and without the descriptors behind it, so that NVML would fail there: where PyTorch asks
it, when memory runs out, for words about it. Closed here, it is opened anew where it is needed.

Nothing that was imported is rubbish: a worker's collector, on again, passes it over.
"""

import ctypes
import gc
import os

NVML = "libnvidia-ml.so.1"
_MOST_TIMES = 1000


def release_nvml(library: str = NVML) -> None:
    """Close NVML in this process as often as it was opened; nothing where it is not loaded."""
    try:
        nvml = ctypes.CDLL(library, mode=os.RTLD_NOLOAD)
    except OSError:
        return
    for _ in range(_MOST_TIMES):
        if nvml.nvmlShutdown() != 0:
            return


release_nvml()
gc.freeze()
gc.enable()
