#include "trainer/run/run_publications.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <span>
#include <sstream>
#include <utility>

#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "core/base/text.h"
#include "core/process/standard_streams.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/published_keys.h"
#include "trainer/data/block_format.h"
#include "trainer/experiment/config.h"
#include "trainer/experiment/make_options.h"
#include "trainer/records/run_files.h"

namespace elastor {
namespace {

// The part of a claim's error that names another flag.
constexpr std::string_view kOutputFlag = "--output_dir=";

constexpr char kNothing[] = "-";  // in the text that goes to all ranks

// Has a line for every run that another run has followed in the folder.
constexpr char kFollowedRuns[] = "followed_runs";

}  // namespace

RunPublications::RunPublications(const std::string& output_dir, RunContext* context)
    : config_(context->experiment.publish()),
      rows_(PublishedRows(config_)),
      output_dir_(output_dir),
      context_(*context),
      writer_(context->State(), context->communicator) {}

Status RunPublications::CheckFolder() const {
  const std::string& path = config_.path();
  std::error_code unequal;
  bool is_run = std::filesystem::equivalent(path, output_dir_, unequal);
  for (const char* const file : {kExperimentFile, kMetricsFile, kSummaryFile}) {
    ELASTOR_ASSIGN_OR_RETURN(const bool there, IsThere(path + "/" + file));
    is_run = is_run || there;
  }
  if (!is_run) return OkStatus();
  return UserError("publish.path: " + path +
                   ": the folder of a run; expected a folder for publications alone");
}

StatusOr<RunPublications::Last> RunPublications::FindLast() const {
  const std::string& path = config_.path();
  ELASTOR_ASSIGN_OR_RETURN(const Published published, FindPublished(path));
  Last last;
  last.number = published.last();
  if (last.number == 0) return last;
  last.has_base = published.bases.contains(last.number);
  const std::string folder =
      path + "/" +
      (published.deltas.contains(last.number) ? PublishedDeltaName(last.number)
                                              : PublishedBaseName(last.number));
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata, ReadCheckpointMetadata(folder));
  const std::optional<Publication>& publication = metadata.publication;
  if (!publication || publication->number != last.number) {
    return UserError(folder +
                     ": not the publication of this number; expected publish.path to name "
                     "a folder that holds publications alone");
  }
  last.step = metadata.control.step();
  last.is_best = metadata.control.has_best();
  last.run = publication->run;
  last.origin = publication->origin;
  last.follows = publication->follows.empty() ? kNothing : publication->follows;
  last.result = publication->result;
  last.digest = metadata.state_digest;
  last.rows = publication->rows;
  return last;
}

StatusOr<RunPublications::Last> RunPublications::ClaimAndFindLast() {
  ELASTOR_RETURN_IF_ERROR(CheckFolder());
  constexpr double kPatienceSeconds = 30;  // ranks outlive their mpirun for a moment
  StatusOr<ClaimedFolder> claimed = ClaimedFolder::Claim(config_.path(), kPatienceSeconds, [this] {
    WriteToStderr("publish.path: " + WithoutControls(config_.path()) +
                  ": another process is writing there; waiting for its end\n");
  });
  if (!claimed.ok()) {
    std::string line = claimed.status().message();
    if (line.starts_with(kOutputFlag)) line.replace(0, kOutputFlag.size(), "publish.path: ");
    return Status(claimed.status().code(), line);
  }
  claimed_.emplace(std::move(claimed).value());
  claimed_->Keep();
  ELASTOR_RETURN_IF_ERROR(RemoveUnfinishedPublications(config_.path()));
  ELASTOR_ASSIGN_OR_RETURN(Last last, FindLast());
  ELASTOR_RETURN_IF_ERROR(CheckNotFollowed(last));
  ELASTOR_RETURN_IF_ERROR(CheckRows(last));
  return last;
}

Status RunPublications::CheckNotFollowed(const Last& last) const {
  const std::string list = config_.path() + "/" + kFollowedRuns;
  ELASTOR_ASSIGN_OR_RETURN(const bool there, IsThere(list));
  if (last.run == run_ || !there) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const std::string runs, ReadFile(list));
  if (runs.find(run_ + "\n") == runs.npos) return OkStatus();
  return UserError("publish.path: " + config_.path() +
                   ": another run has followed this one there; expected a new folder");
}

Status RunPublications::CheckRows(const Last& last) const {
  if (last.number == 0 || last.run != run_ || last.rows == rows_) return OkStatus();
  return UserError(StrCat("publish.rows: ", RowFormatName(rows_), "; the run's publications in ",
                          config_.path(), " have ", RowFormatName(last.rows),
                          " rows; expected the same, or a new folder"));
}

// Before the first publication of this run, whose end may come in between: then the run before is
// still the last one, and may go on.
Status RunPublications::NoteFollowed() const {
  const std::string list = config_.path() + "/" + kFollowedRuns;
  std::string runs;
  ELASTOR_ASSIGN_OR_RETURN(const bool there, IsThere(list));
  if (there) {
    ELASTOR_ASSIGN_OR_RETURN(runs, ReadFile(list));
  }
  if (runs.find(last_.run + "\n") != runs.npos) return OkStatus();
  return WriteFileAtomically(list, runs + last_.run + "\n");
}

Status RunPublications::Begin(const ControlRecord& control, const MakeBatches& make_batches) {
  if (!enabled()) return OkStatus();
  Communicator& communicator = *context_.communicator;
  run_ = HashTextOf(StrCat(NumericHash(context_.experiment), " ", context_.dataset->fingerprint(),
                           " ", control.warm_start_digest(), " ", control.continued_digest()));
  StatusOr<Last> found = Last();
  if (communicator.rank() == 0) found = ClaimAndFindLast();
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, found.status()));
  std::string text = StrCat(found->number, " ", found->step, " ", int{found->has_base}, " ",
                            int{found->is_best}, " ", found->run, " ", found->origin, " ",
                            found->follows, " ", found->result, " ", found->digest);
  ELASTOR_RETURN_IF_ERROR(BroadcastText(communicator, Phase::kSetup, 0, &text));
  std::istringstream(text) >> last_.number >> last_.step >> last_.has_base >> last_.is_best >>
      last_.run >> last_.origin >> last_.follows >> last_.result >> last_.digest;
  if (last_.follows == kNothing) last_.follows.clear();
  if (!goes_on()) {
    const bool begins_elsewhere =
        !control.warm_start_digest().empty() || !control.continued_digest().empty();
    if (last_.number == 0 || begins_elsewhere) return OkStatus();
    return UserError("publish.path: " + config_.path() +
                     " holds the publications of another run; expected a new folder, or a run that "
                     "begins by training.warm_start or --continue");
  }
  if (last_.is_best) return OkStatus();
  if (last_.step == control.step()) return Compare(control);
  if (last_.step > control.step() || context_.State().embedding->unpublished() == nullptr) {
    return OkStatus();
  }
  return MarkSteps(last_.step, control.step(), make_batches);
}

Status RunPublications::MarkSteps(int64_t begin, int64_t end, const MakeBatches& make_batches) {
  const std::string line = StrCat("publish.path: ", end - begin, " steps since number ",
                                  last_.number, ", which a delta must know; ");
  marks_are_lost_ = end - begin > kMostBatchesReadAgain;
  if (marks_are_lost_) {
    context_.log->ShowLine(line + "they are too many to be read again, and a base is next");
    return OkStatus();
  }
  context_.log->ShowLine(line + "the ids of their batches are read again");
  ShardedEmbedding<float>& embedding = *context_.host_embedding();
  if (PublishesKeyedTables(context_.State())) {
    const Status read = ReadPublishedKeys(
        config_.path(), last_.number, last_.result, context_.State(), *context_.communicator,
        [&embedding](int table, std::span<const int64_t> keys, bool have_rows) {
          embedding.NotePublished(table, keys, have_rows);
        });
    marks_are_lost_ = !read.ok();
    if (marks_are_lost_) {
      context_.log->ShowLine("publish.path: " + read.message() +
                             "; which keys left since is not known, and a base is next");
      return OkStatus();
    }
  }
  const std::unique_ptr<BatchSource> batches = make_batches(begin);
  const auto routing = embedding.MakeRouting();
  LocalBatch batch;
  for (int64_t step = begin; step < end; ++step) {
    context_.communicator->Enter(Activity::kDataRead);
    ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(*context_.communicator, batches->Next(&batch)));
    ELASTOR_RETURN_IF_ERROR(embedding.RouteIds(batch.sparse, routing.get()));
    embedding.MarkUnpublished(*routing);
  }
  return OkStatus();
}

Status RunPublications::AfterStep(const ControlRecord& control, bool by_time) {
  if (!enabled()) return OkStatus();
  if (goes_on() && control.step() <= last_.step) {
    const bool again = control.step() == last_.step && !last_.is_best;
    return again ? Compare(control) : OkStatus();
  }
  const int64_t every = config_.every_steps();
  return by_time || (every > 0 && control.step() % every == 0) ? Publish(control) : OkStatus();
}

Status RunPublications::AtEnd(const ControlRecord& control) {
  if (!enabled() || (goes_on() && control.step() <= last_.step)) return OkStatus();
  return Publish(control);
}

Status RunPublications::AtBest(const ControlRecord& control) {
  if (!enabled()) return OkStatus();
  return goes_on() && last_.is_best ? Compare(control) : Publish(control, /*is_best=*/true);
}

Status RunPublications::Compare(const ControlRecord& control) {
  begun_ = Clock::now();
  ELASTOR_ASSIGN_OR_RETURN(const std::string digest,
                           WeightsDigest(context_.State(), rows_, *context_.communicator));
  if (digest != last_.digest) {
    return UserError(StrCat("publish.path: ", config_.path(), ": number ", last_.number,
                            " was published at step ", last_.step, " with the digest ",
                            last_.digest, ", and this run has ", digest,
                            " there; expected the build of the run that published it, or a new "
                            "folder"));
  }
  if (MarkedRows<float>* unpublished = context_.State().embedding->unpublished()) {
    unpublished->Forget();
  }
  if (last_.has_base || (last_.number - 1) % config_.base_every() != 0) return OkStatus();
  // The run was killed between the two folders of this number. The delta has what the base lacks.
  Last again = last_;
  again.has_base = true;
  return Start(again, {.base = true}, control);
}

Status RunPublications::Publish(const ControlRecord& control, bool is_best) {
  const bool deltas = goes_on() && !is_best && !std::exchange(marks_are_lost_, false) &&
                      context_.State().embedding->unpublished() != nullptr;
  if (!goes_on() && last_.number > 0) {
    ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(
        *context_.communicator, context_.communicator->rank() == 0 ? NoteFollowed() : OkStatus()));
  }
  Last next = last_;
  next.number = last_.number + 1;
  next.step = control.step();
  next.is_best = is_best;
  next.run = run_;
  next.follows = last_.result;
  due_since_ = begun_ = Clock::now();
  ELASTOR_ASSIGN_OR_RETURN(next.digest,
                           WeightsDigest(context_.State(), rows_, *context_.communicator));
  next.has_base = !deltas || (next.number - 1) % config_.base_every() == 0;
  return Start(next, {.base = next.has_base, .delta = deltas}, control);
}

Status RunPublications::Start(const Last& next, const PublicationWriter::Parts& parts,
                              const ControlRecord& control) {
  ELASTOR_RETURN_IF_ERROR(Finish());
  // What does not depend on ranks, nor on evaluations that a signal may have put off.
  ControlRecord record;
  record.set_step(control.step());
  record.set_epoch(control.epoch());
  if (next.is_best) {
    record.set_has_best(true);
    record.set_best_step(control.best_step());
  }
  CheckpointMetadata metadata = context_.MakeMetadata(Contents::kWeights, record);
  metadata.experiment = ExperimentText(NumericFields(context_.experiment));
  metadata.state_digest = next.digest;
  Publication& publication = metadata.publication.emplace();
  publication.number = next.number;
  publication.run = next.run;
  publication.origin = next.origin;
  publication.follows = next.follows;
  publication.rows = rows_;
  last_ = next;
  last_.result = PublicationResult(*metadata.publication, next.step, next.digest);
  if (last_.origin.empty()) last_.origin = last_.result;
  // Vocabularies that are whole since the run began; those of version 2 nobody has looked at.
  const bool verified = context_.dataset->version() >= kPreparedVersion;
  ELASTOR_RETURN_IF_ERROR(writer_.Start(config_.path(), metadata, parts,
                                        verified ? context_.experiment.data().path() : "",
                                        config_.keep_bases()));
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.3f", SecondsSince(begun_));
  context_.log->ShowFrequentLine(
      StrCat("publishing number ", next.number, " of step ", next.step,
             parts.delta ? ", a delta" : "", parts.base ? ", a base" : "",
             next.is_best ? " of the best weights" : "", ", blocked ", seconds, " s"));
  return OkStatus();
}

Status RunPublications::Finish() {
  if (!writer_.active()) return OkStatus();
  const Status written = writer_.Finish();
  if (written.code() != StatusCode::kUser) return written;
  // A folder that is gone in mid-run is no mistake of the command that began the run.
  Status failed = MachineError(written.message());
  if (written.agreed()) failed.set_agreed();
  return failed;
}

}  // namespace elastor
