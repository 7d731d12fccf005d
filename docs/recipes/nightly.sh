#!/bin/sh
# Each night: measure the tip of the default branch, keep it, share it. In a crontab:
#   17 3 * * *  /srv/perf/nightly.sh /srv/perf/kernels
set -eu
cd "$1"
git fetch --quiet origin
git checkout --quiet --detach origin/HEAD

code=0
perfci ci || code=$?
perfci history sync
exit "$code"
