#include "trainer/modes/flags.h"

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

DEFINE_string(experiment, "", "what to run: a text file of configs/proto/experiment.proto");
DEFINE_string(set, "", "path.to.field=value overrides a field of the experiment; may be repeated");
DEFINE_string(output_dir, "",
              "where the run is written; a new directory. With --mode=plot of one run its own "
              "report/ when left out");
DEFINE_string(mode, "train", "what to do; the modes are listed below");
DEFINE_string(model, "",
              "with --mode=evaluate, predict, spectra, theory, projection, ntk, verify, compact or "
              "export: RUN/model or a folder of RUN/checkpoints");
DEFINE_string(
    input, "",
    "with --mode=predict: files of raw rows, separated by commas, or - for stdin, that the "
    "model scores by itself, without --experiment; the predictions go to stdout, or to "
    "--output_dir");
DEFINE_int64(max_bad_rows, -1,
             "with --input: more bad rows than this end the program; left out: as the schema says");
DEFINE_string(
    split, "validation",
    "what the model is evaluated on: validation or test; but for --mode=train also train, "
    "the rows that training reads, in their stored order and without dropout");
DEFINE_bool(predictions, false,
            "with --mode=train: write predictions.csv of the evaluation at the end, too");
DEFINE_bool(logits, false,
            "with --mode=predict or --predictions: also the logits, a column of predictions.csv");
DEFINE_bool(per_sample, false,
            "with --mode=spectra: also spectra_samples.csv, the ranks of every row at every stage, "
            "some 20 bytes each");
DEFINE_int64(rows, 0,
             "with --mode=ntk: so many rows of the split; of more than 4096 only the largest "
             "eigenvalue and the density are found; 0: 1024. With --mode=describe: also the memory "
             "that mode ntk takes with as many");
DEFINE_bool(kernels, false,
            "with --mode=ntk: also ntk_LAYER.npy, the kernels, 8 bytes an entry each");
DEFINE_bool(tensorboard, false,
            "also write events.out.tfevents.*, what metrics.jsonl has for TensorBoard: --logdir is "
            "the output directory or one above it");
DEFINE_string(export, "",
              "with the modes plot, spectra and ntk: csv or json: also a file of the data behind "
              "every picture, NAME.csv beside NAME.svg; of mode ntk NAME_drawn.csv");
DEFINE_string(device, "cpu", "what computes: cpu, or cuda: one NVIDIA GPU a rank");
DEFINE_int32(
    ranks, 1,
    "with --mode=describe: the number of ranks to plan for; with --supervise: to start, by "
    "default as many as --hosts has room for");
DEFINE_string(
    machine, "",
    "with --mode=describe: a text file of configs/proto/machine.proto, as --mode=calibrate "
    "writes it; predicts the time of a step on it");
DEFINE_int32(ranks_per_host, 0,
             "with --machine: ranks on each host; 0: as many as have a core for every thread, or a "
             "GPU");
DEFINE_bool(scaling, false,
            "with --machine: prints strong and weak scaling up to --ranks as a table instead");
DEFINE_bool(advise, false,
            "with --machine: also advises threads a rank, batch, virtual shards and a plan for the "
            "cores or GPUs of --ranks");
DEFINE_bool(supervise, false,
            "start the ranks, and start them again from the last checkpoint, on the hosts that are "
            "left, when one is lost");
DEFINE_string(hosts, "", "with --supervise: where the ranks run, HOST:RANKS,HOST:RANKS");
DEFINE_string(hostfile, "", "with --supervise: a file with the same, a line HOST slots=RANKS each");
DEFINE_string(launch, "",
              "with --supervise: mpirun and its options, to which -np and --host are added; by "
              "default mpirun --oversubscribe --bind-to none, and the link to a host watched");
DEFINE_int32(max_restarts, 5,
             "with --supervise: so many starts in a row without a later checkpoint are the last");
DEFINE_bool(resume, false, "continue the run in --output_dir from its last checkpoint");
DEFINE_string(
    continue, "",
    "the folder of a run: a new run in --output_dir goes on from its last state, with its "
    "experiment as changed by --set, as training.epochs=20");
DEFINE_bool(list_models, false, "print the models that --set=model.kind can choose");

namespace elastor {

Status AgreeOnFlags(Communicator& communicator) {
  static const std::set<std::string> kCompared = {"experiment", "set", "model"};
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);  // in the order of their files and names
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    if (!flag.filename.ends_with(kFlagsFile) || kCompared.contains(flag.name)) continue;
    ELASTOR_RETURN_IF_ERROR(AgreeOnText(communicator, "--" + flag.name, flag.current_value));
  }
  return AgreeOnText(communicator, "--model", FLAGS_model.empty() ? "not given" : "given");
}

}  // namespace elastor
