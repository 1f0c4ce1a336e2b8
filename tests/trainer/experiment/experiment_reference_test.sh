#!/usr/bin/env bash
# docs/experiment.md says what experiment.proto says. Arguments: experiment_reference, the descriptors
# of experiment.proto, the page.
set -uo pipefail

if ! diff "$3" <("$1" "$2"); then
  echo 'FAILED: docs/experiment.md is stale: bazel run //trainer/experiment:experiment_reference > docs/experiment.md'
  exit 1
fi
