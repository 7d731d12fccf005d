#!/bin/sh
# Each night: measure the tip of the default branch, keep it, share it. To be copied to where cron
# finds it; cron's own path has /usr/bin and /bin alone, so a crontab says where perfci is:
#   PATH=/opt/perfci/bin:/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin
#   17 3 * * *  /srv/perf/nightly.sh /srv/perf/kernels >>/srv/perf/nightly.log 2>&1
set -eu
cd "$1"
git fetch --quiet origin
git rev-parse --quiet --verify origin/HEAD >/dev/null || git remote set-head origin --auto
git checkout --quiet --detach origin/HEAD

code=0
perfci ci || code=$?
perfci history sync
exit "$code"
