#!/usr/bin/env bash
# docs/experiment.md says what experiment.proto says. Arguments: experiment_reference, the page.
set -uo pipefail

if ! diff "$2" <("$1"); then
  echo 'FAILED: docs/experiment.md is stale: bazel run //trainer/experiment:experiment_reference > docs/experiment.md'
  exit 1
fi
