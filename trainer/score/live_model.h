#ifndef ELASTOR_TRAINER_SCORE_LIVE_MODEL_H_
#define ELASTOR_TRAINER_SCORE_LIVE_MODEL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernels/small_rows.h"
#include "trainer/score/row_encoder.h"
#include "trainer/score/scorer.h"
#include "trainer/score/slot_list.h"

namespace elastor {

// A model that takes new versions from a folder of publications (trainer/checkpoint/publication.h)
// while threads score with it. Scoring takes no lock: a call announces the version that it uses in
// a slot of its own (a hazard pointer) and sees that one to its end.
//
// A delta becomes a layer over the tables. Once no call uses a version without the layer, its rows
// are written into the tables, which nobody reads there, and the layer goes.
class LiveModel {
 public:
  // What every version has alike, so that callers may rely on it.
  struct Interface {
    struct Field {
      std::string name;
      bool is_number = false;
      bool operator==(const Field&) const = default;
    };
    bool encodes = false;  // whether the folder tells how raw values are encoded
    std::vector<Field> fields;
    std::vector<std::string> outputs;
    size_t numeric_fields = 0;
    size_t categorical_fields = 0;
    bool takes_offsets = false;
    bool operator==(const Interface&) const = default;
  };
  struct Version {
    std::shared_ptr<const Scorer> scorer;
    std::shared_ptr<const RowEncoder> encoder;  // null: the folder does not tell the schema
    mutable std::atomic<int64_t> holders = 0;
  };

  // Opens a model's folder, or in a folder of publications the last version that can be verified:
  // the first good base from the last one back, and the deltas behind it. rows: as in Scorer::Open.
  static StatusOr<std::shared_ptr<LiveModel>> Open(const std::string& folder,
                                                   RowFormat rows = RowFormat::kFloat32);
  ~LiveModel();

  const Interface& interface() const { return interface_; }

  // Takes all that is new in a folder of publications, deltas one by one. On error the last whole
  // version stays. Calls wait for each other.
  Status Update(const std::string& folder);

  // The version of a call: `held`, or if that is null the newest. Other threads may update.
  class Use {
   public:
    Use(const LiveModel& model, const Version* held);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    const Version& operator*() const { return *version_; }
    const Version* operator->() const { return version_; }

   private:
    const LiveModel& model_;
    SlotList<std::atomic<const Version*>>::Slot* slot_ = nullptr;
    const Version* version_;
  };
  // Returns the newest version, which stays until Release.
  const Version* Hold() const;
  void Release(const Version* version) const;

 private:
  friend class Use;
  using Hazards = SlotList<std::atomic<const Version*>>;

  explicit LiveModel(RowFormat rows) : rows_(rows) {}
  static StatusOr<std::shared_ptr<LiveModel>> OpenVersion(const std::string& path, int64_t number,
                                                          RowFormat rows);
  Status TakeNew(const std::string& folder);
  Status TakeDelta(const std::string& path);
  Status TakeBase(const std::string& path, int64_t number);
  // Checks that the folder has the present version under its number, unless nothing there changed.
  Status CheckPlace(const std::string& folder, bool has_delta);
  void Publish(std::unique_ptr<const Scorer> scorer, std::shared_ptr<const RowEncoder> encoder);
  // Frees versions that nobody uses, and folds layers that all others have.
  void CleanUp();
  const Publication& place() const {
    return *versions_.back()->scorer->model().metadata.publication;
  }

  const RowFormat rows_;
  Interface interface_;
  std::atomic<const Version*> current_ = nullptr;
  mutable Hazards hazards_;

  std::mutex mutex_;                                      // of updates, not of scoring
  std::vector<std::unique_ptr<const Version>> versions_;  // guarded by mutex_; the last is current_
  std::string checked_;  // guarded by mutex_; the manifest that has the present version's result
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_LIVE_MODEL_H_
