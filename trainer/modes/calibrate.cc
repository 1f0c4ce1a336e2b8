#include <google/protobuf/text_format.h>

#include <memory>
#include <optional>
#include <string>

#include "configs/proto/machine.pb.h"
#include "core/base/file.h"
#include "core/process/claimed_folder.h"
#include "trainer/cost/calibration.h"
#include "trainer/data/dataset.h"
#include "trainer/experiment/resolved_model.h"
#include "trainer/modes/mode_rows.h"

namespace elastor {
namespace {

constexpr char kMachineFile[] = "/machine.textproto";
constexpr char kMachineHead[] =
    "# proto-file: configs/proto/machine.proto\n# proto-message: elastor.Machine\n"
    "# Measured by trainer --mode=calibrate.\n";

// Before anything is measured.
Status ClaimFolder(const std::string& folder, std::optional<ClaimedFolder>* claimed) {
  ELASTOR_ASSIGN_OR_RETURN(*claimed, ClaimedFolder::Claim(folder));
  return (*claimed)->CheckIsEmpty("a new directory for machine.textproto");
}

Status WriteMachine(const std::string& folder, const Machine& machine, ClaimedFolder* claimed) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(machine, &text);
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(folder + kMachineFile, kMachineHead + text));
  claimed->Keep();
  return OkStatus();
}

Status RunCalibrate(const ModeCall& call, Communicator& communicator) {
  const Experiment& experiment = call.options.experiment;
  const std::string& folder = call.options.output_dir;
  const bool first = communicator.rank() == 0;
  std::optional<ClaimedFolder> claimed;  // by rank 0
  ELASTOR_RETURN_IF_ERROR(
      AgreeOnStatus(communicator, first ? ClaimFolder(folder, &claimed) : OkStatus()));
  StatusOr<std::unique_ptr<Dataset>> dataset = Dataset::Open(experiment.data().path());
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, dataset.status()));
  ELASTOR_ASSIGN_OR_RETURN(const ResolvedModel model, ResolveModel(experiment, (*dataset)->info()));
  ELASTOR_ASSIGN_OR_RETURN(const Machine machine,
                           Calibrate(experiment, model, **dataset, &communicator));
  ELASTOR_RETURN_IF_ERROR(
      AgreeOnStatus(communicator, first ? WriteMachine(folder, machine, &*claimed) : OkStatus()));
  return PrintOnce(folder + kMachineFile + "\n", communicator);
}

}  // namespace

const Mode kCalibrate = {
    .name = "calibrate",
    .help = "measures this machine with the experiment's model, for --mode=describe --machine",
    .model = Mode::Model::kNone,
    .cpu_alone = true,
    .run = RunCalibrate};

}  // namespace elastor
