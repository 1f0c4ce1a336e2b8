#!/usr/bin/env bash
# docs/reference/experiment.md says what experiment.proto says. Arguments: experiment_reference, the page.
set -uo pipefail

if ! diff "$2" <("$1"); then
  echo 'FAILED: docs/reference/experiment.md is stale: bazel run //trainer/experiment:experiment_reference > docs/reference/experiment.md'
  exit 1
fi
