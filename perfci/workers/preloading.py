"""What the fork server imports first: it starts and ends without looking for rubbish.

The collector finds none while torch is imported, and what an ending Python takes to pieces, the
system frees as well. Each is a third of a second, of every command that starts a worker.
"""

import atexit
import gc
import os

gc.disable()
# The first to be registered is the last to be called, and what follows it is not done.
atexit.register(os._exit, 0)
