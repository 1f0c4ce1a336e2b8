#include "trainer/checkpoint/publication.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/digest.h"
#include "core/base/exhausted.h"
#include "core/base/file.h"
#include "core/base/hash_text.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/base/thread_pool.h"
#include "core/kernels/small_rows.h"
#include "embedding/key_space.h"
#include "embedding/shard_plan.h"
#include "trainer/checkpoint/dense_copy.h"
#include "trainer/checkpoint/digest_records.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/row_share.h"
#include "trainer/checkpoint/vocabularies.h"

namespace elastor {
namespace {

constexpr std::string_view kPublishedBase = "base-";
constexpr std::string_view kPublishedDelta = "delta-";
constexpr std::string_view kUnfinished = ".partial";

std::string PublishedName(std::string_view kind, int64_t number) {
  char digits[24];
  std::snprintf(digits, sizeof(digits), "%010lld", static_cast<long long>(number));
  return std::string(kind) + digits;
}

// The number in a name that PublishedName(kind, number) makes; 0: another name.
int64_t NumberOf(std::string_view kind, const std::string& name) {
  if (!name.starts_with(kind) || name.size() > kind.size() + 18) return 0;
  const std::string digits = name.substr(kind.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return 0;
  const int64_t number = std::stoll(digits);
  return PublishedName(kind, number) == name ? number : 0;
}

// A name is of a whole publication until the last moment.
Status RemovePublication(const std::string& path) {
  const std::string partial = path + std::string(kUnfinished);
  ELASTOR_RETURN_IF_ERROR(RemoveDirectory(partial));
  ELASTOR_RETURN_IF_ERROR(PublishDirectory(path, partial));
  return RemoveDirectory(partial);
}

}  // namespace

std::string PublishedBaseName(int64_t number) { return PublishedName(kPublishedBase, number); }
std::string PublishedDeltaName(int64_t number) { return PublishedName(kPublishedDelta, number); }

int64_t Published::last() const {
  return std::max(bases.empty() ? 0 : *bases.rbegin(), deltas.empty() ? 0 : *deltas.rbegin());
}

StatusOr<Published> FindPublished(const std::string& folder) {
  Published published;
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(folder));
  for (const std::string& name : names) {
    if (const int64_t base = NumberOf(kPublishedBase, name); base > 0) {
      published.bases.insert(base);
    } else if (const int64_t delta = NumberOf(kPublishedDelta, name); delta > 0) {
      published.deltas.insert(delta);
    }
  }
  return published;
}

Status RemoveUnfinishedPublications(const std::string& folder) {
  ELASTOR_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesIn(folder));
  for (const std::string& name : names) {
    if (!name.ends_with(kUnfinished)) continue;
    const std::string whole = name.substr(0, name.size() - kUnfinished.size());
    if (NumberOf(kPublishedBase, whole) == 0 && NumberOf(kPublishedDelta, whole) == 0) continue;
    ELASTOR_RETURN_IF_ERROR(RemoveDirectory(folder + "/" + name));
  }
  return OkStatus();
}

std::string PublicationResult(const Publication& publication, int64_t step,
                              const std::string& weights_digest) {
  return HashTextOf(StrCat(publication.follows, " ", publication.number, " ", publication.run, " ",
                           step, " ", weights_digest));
}

StatusOr<std::string> WeightsDigest(const StateView& state, RowFormat format,
                                    Communicator& communicator) {
  constexpr int64_t kPartitionsAtOnce = 64;  // their rows of one key / 4096 lie side by side
  const EmbeddingState<float>& embedding = *state.embedding;
  std::vector<Digest> parts(embedding.pool()->threads());
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  Status failed;
  const int64_t blocks = kPartitions / kPartitionsAtOnce;
  embedding.pool()->Run([&](int thread) {
    for (int64_t b = next++; b < blocks * static_cast<int64_t>(state.tables->size()); b = next++) {
      const auto t = static_cast<int>(b / blocks);
      const TableSpec& table = (*state.tables)[t];
      if (table.counts()) continue;
      const uint64_t seed = RowSeed(table.name);
      const int64_t begin = b % blocks * kPartitionsAtOnce;
      std::vector<float> small(RowWords(format, table.width));
      const auto add = [&](int64_t key, const float* row) {
        if (format != RowFormat::kFloat32) {
          if (!EncodeRow(format, row, table.width, small.data())) {
            const std::lock_guard lock(mutex);
            failed = DivergedError(StrCat("publish.rows: ", RowFormatName(format), ": key ",
                                          KeyText(key), " of embedding table '", table.name,
                                          "' has a weight that is not finite, or not below 2^127"));
            return;
          }
          row = small.data();
        }
        parts[thread].AddHashed(seed, static_cast<uint64_t>(key), row,
                                small.size() * sizeof(float));
      };
      embedding.ForEachRowOf(t, {begin, begin + kPartitionsAtOnce},
                             [&](std::span<const int64_t> keys, const float* const* rows) {
                               for (size_t i = 0; i < keys.size(); ++i) add(keys[i], rows[i]);
                             });
    }
  });
  ELASTOR_RETURN_IF_ERROR(AgreeOnStatus(communicator, failed));
  Digest digest;
  for (const Digest& part : parts) digest.Merge(part);
  ELASTOR_ASSIGN_OR_RETURN(const float* const weights, state.weights());
  if (communicator.rank() == 0) {
    for (const ParameterInfo& p : state.layout->parameters()) {
      AddDenseTensor(p.name, {weights + p.offset, static_cast<size_t>(p.size)}, &digest);
    }
  }
  return SumDigest(digest, communicator);
}

// One publication is in the making while `active`; on rank 0 a thread writes it.
struct PublicationWriter::State {
  State(const StateView& view, Communicator* communicator)
      : view(view), communicator(*communicator) {}

  Status Write();
  std::string PathOf(bool is_delta) const;
  Status WriteFolder(bool is_delta, RowShare* rows);
  void RemoveUnfinished() const;
  Status RemoveOld() const;

  const StateView view;
  Communicator& communicator;
  StagingMemory own_base, whole_base, own_delta, whole_delta;

  bool active = false;
  std::string folder, vocabularies_from;
  CheckpointMetadata metadata;
  int64_t keep_bases = 1;
  std::optional<RowShare> base, delta;  // null: is not written
  std::optional<DenseCopy> dense;

  std::thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;  // guarded by mutex
  Status status;      // the thread's until done
};

std::string PublicationWriter::State::PathOf(bool is_delta) const {
  const int64_t number = metadata.publication->number;
  return folder + "/" + (is_delta ? PublishedDeltaName(number) : PublishedBaseName(number));
}

void PublicationWriter::State::RemoveUnfinished() const {
  for (const bool is_delta : {false, true}) {
    const std::string partial = PathOf(is_delta) + std::string(kUnfinished);
    if (const Status removed = RemoveDirectory(partial); !removed.ok()) {
      LOG(WARNING) << removed.message();
    }
  }
}

Status PublicationWriter::State::WriteFolder(bool is_delta, RowShare* rows) {
  CheckpointMetadata of_folder = metadata;
  of_folder.publication->delta = is_delta;
  const std::string path = PathOf(is_delta);
  const std::string partial = path + std::string(kUnfinished);
  ELASTOR_RETURN_IF_ERROR(RemoveDirectory(partial));
  ELASTOR_RETURN_IF_ERROR(MakeOwnDirectory(partial));
  if (!is_delta && !vocabularies_from.empty() && HasVocabularies(*metadata.encoding)) {
    of_folder.has_vocabularies = true;
    ELASTOR_RETURN_IF_ERROR(CopyVocabularies(*metadata.encoding, vocabularies_from, partial));
  }
  ELASTOR_ASSIGN_OR_RETURN(const EmbeddingFile embedding,
                           rows->Write(partial, EmbeddingFileName(0, 1)));
  ELASTOR_ASSIGN_OR_RETURN(const DenseFile dense_file, dense->Write(partial + "/" + kDenseFile));
  const std::string text = EmbeddingFileText(embedding, rows->tables());
  ELASTOR_RETURN_IF_ERROR(
      WriteFileAtomically(partial + "/" + kManifestFile,
                          ManifestText({of_folder, rows->tables(), dense_file, {}}, {&text, 1})));
  return PublishDirectory(partial, path);
}

// Deltas before the bases that contain them: whatever is left if the run is killed, can be read.
Status PublicationWriter::State::RemoveOld() const {
  ELASTOR_ASSIGN_OR_RETURN(Published published, FindPublished(folder));
  if (published.bases.empty()) return OkStatus();
  std::set<int64_t> old = published.bases;
  for (int64_t kept = 0; kept < keep_bases && !old.empty(); ++kept) old.erase(*old.rbegin());
  const int64_t oldest =
      old.empty() ? *published.bases.begin() : *published.bases.upper_bound(*old.rbegin());
  for (const int64_t number : published.deltas) {
    if (number > oldest) break;
    ELASTOR_RETURN_IF_ERROR(RemovePublication(folder + "/" + PublishedDeltaName(number)));
  }
  for (const int64_t number : old) {
    ELASTOR_RETURN_IF_ERROR(RemovePublication(folder + "/" + PublishedBaseName(number)));
  }
  return OkStatus();
}

Status PublicationWriter::State::Write() {
  // A reader that has the number before takes the delta, and looks for a base only without one.
  if (delta) ELASTOR_RETURN_IF_ERROR(WriteFolder(/*is_delta=*/true, &*delta));
  if (!base) return OkStatus();
  ELASTOR_RETURN_IF_ERROR(WriteFolder(/*is_delta=*/false, &*base));
  return RemoveOld();
}

PublicationWriter::PublicationWriter(const StateView& state, Communicator* communicator)
    : state_(std::make_unique<State>(state, communicator)) {}

PublicationWriter::~PublicationWriter() {
  if (state_->thread.joinable()) state_->thread.join();
}

bool PublicationWriter::active() const { return state_->active; }

bool PublicationWriter::done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

Status PublicationWriter::Start(const std::string& folder, const CheckpointMetadata& metadata,
                                const Parts& parts, const std::string& vocabularies_from,
                                int64_t keep_bases) {
  State& state = *state_;
  CHECK(!state.active) << folder << ": the publication before is not finished";
  state.communicator.Enter(Activity::kCheckpointCopy);
  state.folder = folder;
  state.metadata = metadata;
  state.vocabularies_from = vocabularies_from;
  state.keep_bases = keep_bases;
  Publication& publication = *state.metadata.publication;
  publication.result =
      PublicationResult(publication, metadata.control.step(), metadata.state_digest);
  if (publication.origin.empty()) publication.origin = publication.result;
  MarkedRows<float>* const unpublished = state.view.embedding->unpublished();
  if (parts.delta) {
    state.delta.emplace(state.view, Contents::kWeights, unpublished, publication.rows);
    ELASTOR_RETURN_IF_ERROR(
        state.delta->Gather(&state.own_delta, &state.whole_delta, state.communicator));
  }
  if (parts.base) {
    state.base.emplace(state.view, Contents::kWeights, nullptr, publication.rows);
    ELASTOR_RETURN_IF_ERROR(
        state.base->Gather(&state.own_base, &state.whole_base, state.communicator));
  }
  ELASTOR_ASSIGN_OR_RETURN(state.dense,
                           DenseCopy::Gather(state.view, Contents::kWeights, state.communicator));
  if (unpublished != nullptr) unpublished->Forget();
  state.active = true;
  state.done = state.communicator.rank() != 0;
  state.status = OkStatus();
  if (state.done) return OkStatus();
  state.thread = StartThread(1, 1, "publishing", [&state] {
    Status written = state.Write();
    if (!written.ok()) state.RemoveUnfinished();
    const std::lock_guard lock(state.mutex);
    state.status = std::move(written);
    state.done = true;
    state.changed.notify_all();
  });
  return OkStatus();
}

Status PublicationWriter::Finish() {
  State& state = *state_;
  CHECK(state.active) << "Finish without Start";
  int64_t waits = 1;
  while (waits != 0) {
    state.communicator.Enter(Activity::kCheckpointWrite);
    std::unique_lock lock(state.mutex);
    constexpr std::chrono::seconds kMeet(1);
    waits = state.changed.wait_for(lock, kMeet, [&] { return state.done; }) ? 0 : 1;
    lock.unlock();
    ELASTOR_RETURN_IF_ERROR(state.communicator.AllReduceMax(Phase::kSetup, {&waits, 1}));
  }
  if (state.thread.joinable()) state.thread.join();
  state.active = false;
  state.base.reset();
  state.delta.reset();
  state.dense.reset();
  // It comes seldom, and is large.
  state.own_base = StagingMemory();
  state.whole_base = StagingMemory();
  return AgreeOnStatus(state.communicator, state.status);
}

}  // namespace elastor
