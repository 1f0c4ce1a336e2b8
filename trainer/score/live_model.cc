#include "trainer/score/live_model.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/file.h"
#include "core/base/text.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/publication.h"

namespace elastor {
namespace {

bool IsNumber(const FieldPlan& plan) {
  return plan.type == Field::NUMERIC || plan.transform == Field::BUCKET ||
         plan.transform == Field::LOG2_BUCKET;
}

LiveModel::Interface InterfaceOf(const Scorer& scorer, const RowEncoder* encoder) {
  LiveModel::Interface interface;
  interface.encodes = encoder != nullptr;
  if (encoder != nullptr) {
    for (const FieldPlan& plan : encoder->features()) {
      interface.fields.push_back({plan.name, IsNumber(plan)});
    }
  }
  for (int64_t o = 0; o < scorer.task().outputs(); ++o) {
    interface.outputs.push_back(scorer.task().learned[o].name);
  }
  const DatasetInfo& data = scorer.model().data;
  interface.numeric_fields = data.numeric.size();
  interface.categorical_fields = data.categorical.size();
  interface.takes_offsets =
      std::ranges::any_of(data.categorical, &DatasetInfo::Categorical::multi_hot);
  return interface;
}

StatusOr<std::shared_ptr<const RowEncoder>> OpenEncoder(const Scorer& scorer,
                                                        const std::string& folder) {
  const DataEncoding& encoding = *scorer.model().metadata.encoding;
  if (encoding.schema.empty()) return std::shared_ptr<const RowEncoder>();
  ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<RowEncoder> encoder,
                           RowEncoder::Open(encoding, DirectoryToRead(folder)));
  return std::shared_ptr<const RowEncoder>(std::move(encoder));
}

// Tells a file from one that takes its place; empty: it is not there.
std::string MarkOf(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return "";
  return StrCat(path, " ", facts.st_dev, " ", facts.st_ino, " ", facts.st_size, " ",
                facts.st_mtim.tv_sec, " ", facts.st_mtim.tv_nsec);
}

Status CheckNumber(const Scorer& scorer, const std::string& path, int64_t number) {
  const std::optional<Publication>& publication = scorer.model().metadata.publication;
  if (publication && publication->number == number) return OkStatus();
  return UserError(path + ": not the publication of this number");
}

}  // namespace

StatusOr<std::shared_ptr<LiveModel>> LiveModel::Open(const std::string& folder) {
  ELASTOR_ASSIGN_OR_RETURN(const bool is_model,
                           IsThere(DirectoryToRead(folder) + "/" + kManifestFile));
  if (is_model) return OpenVersion(folder, 0);
  for (int64_t newest = 0;;) {
    ELASTOR_ASSIGN_OR_RETURN(const Published published, FindPublished(folder));
    if (published.bases.empty() && published.last() > 0) {
      return UserError(folder +
                       ": has deltas and no base; expected a base, which the run writes "
                       "every publish.base_every publications");
    }
    if (published.bases.empty()) return OpenVersion(folder, 0);
    Status failed;  // of the newest base
    for (auto base = published.bases.rbegin(); base != published.bases.rend(); ++base) {
      auto model = OpenVersion(folder + "/" + PublishedBaseName(*base), *base);
      if (model.ok()) {
        // What cannot be taken behind it, the next update tells.
        static_cast<void>((*model)->Update(folder));
        return model;
      }
      if (failed.ok()) failed = model.status();
    }
    // The trainer may have removed them meanwhile, because of a newer one.
    if (std::exchange(newest, *published.bases.rbegin()) == newest) return failed;
  }
}

StatusOr<std::shared_ptr<LiveModel>> LiveModel::OpenVersion(const std::string& path,
                                                            int64_t number) {
  ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<Scorer> scorer, Scorer::Open(path, /*pool=*/nullptr));
  if (number > 0) ELASTOR_RETURN_IF_ERROR(CheckNumber(*scorer, path, number));
  ELASTOR_ASSIGN_OR_RETURN(std::shared_ptr<const RowEncoder> encoder, OpenEncoder(*scorer, path));
  std::shared_ptr<LiveModel> model(new LiveModel());
  model->interface_ = InterfaceOf(*scorer, encoder.get());
  model->Publish(std::move(scorer), std::move(encoder));
  return model;
}

LiveModel::~LiveModel() = default;

// ---- Use

LiveModel::Use::Use(const LiveModel& model, const Version* held) : model_(model), version_(held) {
  if (held != nullptr) return;
  slot_ = model.hazards_.Take();
  // Whoever makes another version current looks at the slots afterwards.
  version_ = model.current_.load();
  for (;;) {
    slot_->value.store(version_);
    const Version* const now = model.current_.load();
    if (now == version_) return;
    version_ = now;
  }
}

LiveModel::Use::~Use() {
  if (slot_ == nullptr) return;
  slot_->value.store(nullptr);
  model_.hazards_.Give(slot_);
}

const LiveModel::Version* LiveModel::Hold() const {
  const Use use(*this, nullptr);
  use->holders.fetch_add(1);
  return &*use;
}

void LiveModel::Release(const Version* version) const { version->holders.fetch_sub(1); }

// ---- Updates

void LiveModel::Publish(std::unique_ptr<const Scorer> scorer,
                        std::shared_ptr<const RowEncoder> encoder) {
  auto version = std::make_unique<Version>();
  version->scorer = std::move(scorer);
  version->encoder = std::move(encoder);
  versions_.push_back(std::move(version));
  current_.store(versions_.back().get());
}

void LiveModel::CleanUp() {
  for (;;) {
    const Version* const current = versions_.back().get();
    std::vector<const Version*> used;
    hazards_.ForEach(
        [&](const std::atomic<const Version*>& value) { used.push_back(value.load()); });
    std::erase_if(versions_, [&](const std::unique_ptr<const Version>& version) {
      return version.get() != current && std::ranges::find(used, version.get()) == used.end() &&
             version->holders.load() == 0;
    });
    const Scorer& scorer = *current->scorer;
    if (scorer.layers() == 0) return;
    for (const std::unique_ptr<const Version>& version : versions_) {
      const Scorer& other = *version->scorer;
      if (other.SharesTables(scorer) && !other.HasOldestLayerOf(scorer)) return;
    }
    Publish(scorer.FoldOldestLayer(), current->encoder);
  }
}

Status LiveModel::Update(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  CleanUp();
  const Status taken = TakeNew(folder);
  CleanUp();
  return taken;
}

Status LiveModel::TakeNew(const std::string& folder) {
  if (!versions_.back()->scorer->model().metadata.publication) {
    return UserError(folder +
                     ": the model is no publication; expected one that was opened from a "
                     "folder of publications, or from a base in it");
  }
  for (bool again = false;;) {
    ELASTOR_ASSIGN_OR_RETURN(const Published published, FindPublished(folder));
    const int64_t here = place().number;
    const int64_t last = published.last();
    if (last < here) {
      return UserError(
          StrCat(folder,
                 last == 0 ? ": has no publications" : ": ends with number " + std::to_string(last),
                 "; the model stays at number ", here));
    }
    if (last == here) return CheckPlace(folder, published.deltas.contains(here));
    Status taken = UserError(StrCat(folder, ": number ", here + 1,
                                    " is missing, and no base comes "
                                    "behind it yet; the model stays at number ",
                                    here));
    if (published.deltas.contains(here + 1)) {
      taken = TakeDelta(folder + "/" + PublishedDeltaName(here + 1));
    }
    for (auto base = published.bases.rbegin(); base != published.bases.rend(); ++base) {
      if (taken.ok() || *base <= here) break;
      taken = TakeBase(folder + "/" + PublishedBaseName(*base), *base);
    }
    if (taken.ok()) {
      again = false;
      continue;
    }
    // The trainer may just have removed what a newer base contains.
    if (std::exchange(again, true)) return taken;
  }
}

Status LiveModel::TakeDelta(const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<Scorer> next, versions_.back()->scorer->Next(path));
  Publish(std::move(next), versions_.back()->encoder);
  CleanUp();
  return OkStatus();
}

Status LiveModel::TakeBase(const std::string& path, int64_t number) {
  ELASTOR_ASSIGN_OR_RETURN(std::unique_ptr<Scorer> scorer, Scorer::Open(path, /*pool=*/nullptr));
  ELASTOR_RETURN_IF_ERROR(CheckNumber(*scorer, path, number));
  if (scorer->model().metadata.publication->origin != place().origin) {
    return UserError(path + ": of another chain of publications; open it as a model of its own");
  }
  ELASTOR_ASSIGN_OR_RETURN(std::shared_ptr<const RowEncoder> encoder, OpenEncoder(*scorer, path));
  if (InterfaceOf(*scorer, encoder.get()) != interface_) {
    return UserError(path + ": has other fields or labels; open it as a model of its own");
  }
  Publish(std::move(scorer), std::move(encoder));
  CleanUp();
  return OkStatus();
}

Status LiveModel::CheckPlace(const std::string& folder, bool has_delta) {
  const int64_t number = place().number;
  const std::string path =
      folder + "/" + (has_delta ? PublishedDeltaName(number) : PublishedBaseName(number));
  const std::string mark = MarkOf(path + "/" + kManifestFile);
  if (!mark.empty() && mark == checked_) return OkStatus();
  checked_.clear();
  ELASTOR_ASSIGN_OR_RETURN(const CheckpointMetadata metadata, ReadCheckpointMetadata(path));
  if (!metadata.publication || metadata.publication->result != place().result) {
    return UserError(path + ": of another model, or of another chain of publications");
  }
  checked_ = mark;
  return OkStatus();
}

}  // namespace elastor
