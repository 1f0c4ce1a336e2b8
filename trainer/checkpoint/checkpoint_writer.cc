#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/exhausted.h"
#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "core/base/log.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/dense_copy.h"
#include "trainer/checkpoint/digest_records.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/row_share.h"
#include "trainer/checkpoint/vocabularies.h"

namespace elastor {
namespace {

// How often ranks that wait for a slower one meet.
constexpr std::chrono::seconds kMeetEvery(1);

// Every rank's text, on rank 0 by rank; elsewhere nothing.
StatusOr<std::vector<std::string>> GatherTexts(const std::string& mine,
                                               Communicator& communicator) {
  const int ranks = communicator.size();
  const bool root = communicator.rank() == 0;
  std::vector<int64_t> lengths(ranks);
  lengths[communicator.rank()] = static_cast<int64_t>(mine.size());
  const std::vector<int64_t> eight(ranks, sizeof(int64_t));
  ELASTOR_RETURN_IF_ERROR(
      communicator.AllGatherV(Phase::kSetup, &lengths[communicator.rank()], lengths.data(), eight));
  std::vector<int64_t> send(ranks, 0);
  send[0] = static_cast<int64_t>(mine.size());
  const std::vector<int64_t> receive = root ? lengths : std::vector<int64_t>(ranks, 0);
  int64_t total = 0;
  for (const int64_t length : receive) total += length;
  std::string all(total, '\0');
  ELASTOR_RETURN_IF_ERROR(
      communicator.AllToAllV(Phase::kSetup, mine.data(), send, all.data(), receive));
  std::vector<std::string> texts;
  size_t at = 0;
  for (int r = 0; r < ranks && root; at += lengths[r++])
    texts.push_back(all.substr(at, lengths[r]));
  return texts;
}

}  // namespace

// One checkpoint is in the making while `thread` is joinable.
struct CheckpointWriter::State {
  State(const StateView& view, int64_t staging_bytes, Communicator* communicator)
      : view(view),
        staging_bytes(staging_bytes),
        communicator(*communicator),
        touched(view.embedding->touched()) {}

  // Collective. The folder for what is written.
  Status Begin(const std::string& to, const CheckpointMetadata& of);
  // Collective. Whether the touched rows are few enough for a delta.
  StatusOr<bool> AreFewTouched() const;
  // Collective. Copies, or sees to it that nobody changes the tables before they are written.
  // `changed`: the rows of a delta; null: all rows.
  Status CopyAndWrite(const TouchedRows<float>* changed);
  // The thread's work: no collective, and of the tables only what was not copied.
  void Write();
  Status WriteFiles();
  // Collective. Returns when every rank's thread is done.
  Status WaitForAll();
  // Collective. The manifest, then the folder's name.
  StatusOr<CheckpointMetadata> Publish();
  Status PublishOnRoot(std::span<const std::string> embedding);
  void Forget();

  // The full state that touched rows are counted from.
  struct Base {
    std::filesystem::path path;
    std::string manifest_xxh3;  // on rank 0
    Digest rows;                // of this rank's share
  };

  const StateView view;
  const int64_t staging_bytes;
  Communicator& communicator;
  TouchedRows<float>* const touched;  // null: not noted
  std::optional<Base> base;

  StagingMemory staging;
  std::string path;
  CheckpointMetadata metadata;
  std::string vocabularies_from;  // a data set's folder, if they are to be copied
  std::optional<RowShare> rows;
  std::optional<DenseCopy> dense;
  bool copied = false;
  std::thread thread;

  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;  // guarded by mutex; what follows is the thread's until then
  Status status;
  EmbeddingFile embedding_file;
  DenseFile dense_file;
  Digest row_digest;  // of all rows of this rank's share, with a delta too
  Digest dense_digest;

  std::string partial() const { return path + ".partial"; }
  // Whether touched rows count from the state that is written.
  bool IsNewBase() const {
    return touched != nullptr && metadata.contents == Contents::kState && !metadata.base;
  }
};

Status CheckpointWriter::State::Begin(const std::string& to, const CheckpointMetadata& of) {
  path = to;
  metadata = of;
  metadata.has_vocabularies = false;
  metadata.base.reset();
  Status made;
  if (communicator.rank() == 0) {
    made = RemoveDirectory(partial());
    if (made.ok()) made = MakeOwnDirectory(partial());
  }
  return AgreeOnStatus(communicator, made);
}

StatusOr<bool> CheckpointWriter::State::AreFewTouched() const {
  int64_t bytes[] = {RowShare(view, Contents::kState, touched).bytes(),
                     RowShare(view, Contents::kState, nullptr).bytes()};
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kSetup, bytes));
  return static_cast<double>(bytes[0]) <= kMostDelta * static_cast<double>(bytes[1]);
}

Status CheckpointWriter::State::CopyAndWrite(const TouchedRows<float>* changed) {
  communicator.Enter(Activity::kCheckpointCopy);
  ELASTOR_ASSIGN_OR_RETURN(dense, DenseCopy::Gather(view, metadata.contents, communicator));
  rows.emplace(view, metadata.contents, changed);
  copied = rows->bytes() <= staging_bytes;
  row_digest = dense_digest = Digest();
  if (copied) rows->Copy(&staging);
  if (changed != nullptr) {
    if (!copied) changed->AddTouchedToDigest(&row_digest);
    row_digest.Merge(base->rows);
    row_digest.Subtract(changed->KeptRecords(RowSet::kTouched));
  } else if (IsNewBase()) {
    touched->Forget();
    base.reset();  // until this one is whole
    if (!copied) touched->KeepRecords(&row_digest);
  } else if (!copied && metadata.contents == Contents::kState) {
    view.embedding->AddToDigest(&row_digest);
  }
  done = false;
  thread = StartThread(1, 1, "writing checkpoints", [this] { Write(); });
  int64_t waits = copied ? 0 : 1;
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceMax(Phase::kSetup, {&waits, 1}));
  return waits == 0 ? OkStatus() : WaitForAll();
}

void CheckpointWriter::State::Write() {
  Status written = WriteFiles();
  const std::lock_guard lock(mutex);
  status = std::move(written);
  done = true;
  changed.notify_all();
}

Status CheckpointWriter::State::WriteFiles() {
  if (metadata.contents == Contents::kState) {
    if (copied) rows->AddToDigest(IsNewBase() ? touched : nullptr, &row_digest);
    dense->AddToDigest(&dense_digest);
  }
  const std::string name = EmbeddingFileName(communicator.rank(), communicator.size());
  ELASTOR_ASSIGN_OR_RETURN(embedding_file, rows->Write(partial(), name));
  if (communicator.rank() != 0) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(dense_file, dense->Write(partial() + "/" + kDenseFile));
  return metadata.has_vocabularies
             ? CopyVocabularies(*metadata.encoding, vocabularies_from, partial())
             : OkStatus();
}

Status CheckpointWriter::State::WaitForAll() {
  int64_t waits = 1;
  while (waits != 0) {
    std::unique_lock lock(mutex);
    if (!done) {
      communicator.Enter(IsSyncing() ? Activity::kCheckpointSync : Activity::kCheckpointWrite);
    }
    waits = changed.wait_for(lock, kMeetEvery, [this] { return done; }) ? 0 : 1;
    lock.unlock();
    if (waits == 0) communicator.Enter(Activity::kCheckpointPeers);
    ELASTOR_RETURN_IF_ERROR(communicator.AllReduceMax(Phase::kSetup, {&waits, 1}));
  }
  return OkStatus();
}

StatusOr<CheckpointMetadata> CheckpointWriter::State::Publish() {
  ELASTOR_RETURN_IF_ERROR(WaitForAll());
  communicator.Enter(Activity::kCheckpointPublish);
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, status));
  if (metadata.contents == Contents::kState) {
    Digest digest = row_digest;
    digest.Merge(dense_digest);
    if (communicator.rank() == 0) AddControl(metadata.control, &digest);
    ELASTOR_ASSIGN_OR_RETURN(metadata.state_digest, SumDigest(digest, communicator));
  }
  ELASTOR_ASSIGN_OR_RETURN(
      const std::vector<std::string> embedding,
      GatherTexts(EmbeddingFileText(embedding_file, rows->tables()), communicator));
  const Status published = communicator.rank() == 0 ? PublishOnRoot(embedding) : OkStatus();
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, published));
  if (IsNewBase()) base = {path, metadata.manifest_xxh3, row_digest};
  return metadata;
}

Status CheckpointWriter::State::PublishOnRoot(std::span<const std::string> embedding) {
  const std::string text = ManifestText({metadata, rows->tables(), dense_file, {}}, embedding);
  metadata.manifest_xxh3 = SealOf(text);
  ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(partial() + "/" + kManifestFile, text));
  return ReplaceDirectory(partial(), path);
}

void CheckpointWriter::State::Forget() {
  thread.join();
  rows.reset();
  dense.reset();
}

CheckpointWriter::CheckpointWriter(const StateView& state, int64_t staging_bytes,
                                   Communicator* communicator)
    : state_(std::make_unique<State>(state, staging_bytes, communicator)) {}

CheckpointWriter::~CheckpointWriter() {
  if (!active()) return;
  state_->Forget();
  // Not collective: every rank removes what it wrote, and the last one the folder.
  const std::string& partial = state_->partial();
  std::error_code ignored;
  const auto remove = [&](const std::string& name) {
    std::filesystem::remove(partial + "/" + name, ignored);
  };
  remove(EmbeddingFileName(state_->communicator.rank(), state_->communicator.size()));
  if (state_->communicator.rank() == 0) {
    remove(kDenseFile);
    std::filesystem::remove_all(partial + "/" + kVocabularyFolder, ignored);
  }
  std::filesystem::remove(partial, ignored);
}

Status CheckpointWriter::Start(const std::string& path, const CheckpointMetadata& metadata,
                               const std::string& vocabularies_from) {
  CHECK(!active()) << path << ": the checkpoint before is not finished";
  ELASTOR_RETURN_IF_ERROR(state_->Begin(path, metadata));
  state_->metadata.has_vocabularies =
      !vocabularies_from.empty() && metadata.encoding && HasVocabularies(*metadata.encoding);
  state_->vocabularies_from = vocabularies_from;
  return state_->CopyAndWrite(nullptr);
}

Status CheckpointWriter::StartDelta(const std::string& path, const CheckpointMetadata& metadata) {
  CHECK(!active()) << path << ": the checkpoint before is not finished";
  CHECK(metadata.contents == Contents::kState) << path << ": a delta of weights";
  const std::optional<State::Base>& base = state_->base;
  const std::filesystem::path to = path;
  if (!base || to.parent_path() != base->path.parent_path() || to == base->path) {
    return Start(path, metadata);
  }
  ELASTOR_ASSIGN_OR_RETURN(const bool few, state_->AreFewTouched());
  if (!few) return Start(path, metadata);
  ELASTOR_RETURN_IF_ERROR(state_->Begin(path, metadata));
  state_->metadata.base = {base->path.filename(), base->manifest_xxh3};
  return state_->CopyAndWrite(state_->touched);
}

void CheckpointWriter::ContinueFrom(const std::string& path, const CheckpointMetadata& metadata) {
  if (state_->touched == nullptr) return;
  std::filesystem::path folder = path;
  std::string manifest_xxh3 = metadata.manifest_xxh3;
  if (metadata.base) {
    folder.replace_filename(metadata.base->name);
    manifest_xxh3 = metadata.base->manifest_xxh3;
  }
  state_->base = {folder, manifest_xxh3, state_->touched->KeptRecords(RowSet::kAll)};
}

bool CheckpointWriter::active() const { return state_->thread.joinable(); }

bool CheckpointWriter::done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

StatusOr<CheckpointMetadata> CheckpointWriter::Finish() {
  CHECK(active()) << "Finish without Start";
  StatusOr<CheckpointMetadata> metadata = state_->Publish();
  state_->Forget();
  if (!metadata.ok() && state_->communicator.rank() == 0) {
    if (const Status removed = RemoveDirectory(state_->partial()); !removed.ok()) {
      LOG(WARNING) << removed.message();
    }
  }
  return metadata;
}

}  // namespace elastor
