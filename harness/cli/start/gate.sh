#!/usr/bin/env bash
# gate.sh COMMAND...: runs a command of trt-compat that writes the report REPORTS; on a pull request against BASE it says
# what changes from the report that was there before, the base's, and fails where a part in FAIL_ON gets worse.
set -euo pipefail

base=$(mktemp -d)
trap 'rm -rf "$base"' EXIT
# The cache has what the base's last run left in REPORTS; if it was evicted, the artifact of that run may have it.
if [ -n "${BASE:-}" ] && [ ! -f "$REPORTS/results.json" ] && [ -n "${GH_TOKEN:-}" ] && command -v gh >/dev/null; then
    run=$(gh run list --branch "$BASE" --workflow "$GITHUB_WORKFLOW" --status completed --limit 1 \
        --json databaseId --jq '.[].databaseId') || run=
    [ -z "$run" ] || gh run download "$run" --name "${ARTIFACT:-$REPORTS}" --dir "$REPORTS" || true
fi
[ ! -f "$REPORTS/results.json" ] || cp "$REPORTS/results.json" "$base"

code=0
"$@" --reports "$REPORTS" || code=$?
# What regressed by what was accepted failed the job that ran it.
if [ "${2:-}" = merge ] && [ "$code" = 1 ]; then code=0; fi
told=$RUNNER_TEMP/trt-compat.md
: >"$told"
if [ -n "${BASE:-}" ] && [ ! -f "$base/results.json" ]; then
    echo "No run of $BASE has left results yet: nothing to compare with." >"$told"
elif [ -n "${BASE:-}" ] && [ -f "$REPORTS/results.json" ]; then
    compared=0
    "$1" diff "$base" "$REPORTS" --markdown --fail-on "${FAIL_ON:-class,precision}" >"$told" || compared=$?
    [ "$code" != 0 ] || code=$compared
fi
cat "$told"
cat "$told" >>"$GITHUB_STEP_SUMMARY"
[ ! -f "$REPORTS/summary.md" ] || cat "$REPORTS/summary.md" >>"$GITHUB_STEP_SUMMARY"
exit "$code"
