#include "trainer/experiment/describe.h"

#include <memory>

#include "trainer/data/dataset.h"
#include "trainer/experiment/config_checks.h"
#include "trainer/experiment/make_options.h"
#include "trainer/modes/flags.h"
#include "trainer/modes/mode_rows.h"

namespace elastor {
namespace {

Status RunDescribe(const ModeCall& call, Communicator& communicator) {
  const RunOptions& options = call.options;
  ELASTOR_RETURN_IF_ERROR(ValidateRanks(options.experiment, FLAGS_ranks));
  DatasetInfo info = AssumedData(options.experiment.data().shape());
  if (const std::string& path = options.experiment.data().path(); !path.empty()) {
    ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> dataset, Dataset::Open(path));
    info = dataset->info();
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::string text,
                           Describe(options.experiment, info, FLAGS_ranks, FLAGS_rows));
  return PrintOnce(text, communicator);
}

constexpr const char* kDescribeFlags[] = {"ranks", "rows"};

}  // namespace

const Mode kDescribe = {.name = "describe",
                        .help = "prints parameters, FLOPs, memory and shard plan as JSON",
                        .source = Mode::Source::kExperiment,
                        .model = Mode::Model::kNone,
                        .writes = false,
                        .flags = kDescribeFlags,
                        .run = RunDescribe};

}  // namespace elastor
