#ifndef ELASTOR_TRAINER_SCORE_SLOT_LIST_H_
#define ELASTOR_TRAINER_SCORE_SLOT_LIST_H_

#include <atomic>
#include <memory>
#include <utility>

namespace elastor {

// Values that threads take, one each, and give back, without a lock. There are as many as threads
// ever had at once; they live as long as the list.
template <typename T>
class SlotList {
 public:
  class Slot {
   public:
    T value{};

   private:
    friend class SlotList;
    std::atomic<bool> taken = true;
    Slot* next = nullptr;
  };

  SlotList() = default;
  SlotList(const SlotList&) = delete;
  SlotList& operator=(const SlotList&) = delete;
  ~SlotList() {
    for (Slot* slot = first_.load(); slot != nullptr;) {
      const std::unique_ptr<Slot> owned(std::exchange(slot, slot->next));
    }
  }

  // Returns a slot that nobody else has until Give: one that was given back, or a new one.
  Slot* Take() {
    for (Slot* slot = first_.load(); slot != nullptr; slot = slot->next) {
      if (!slot->taken.load(std::memory_order_relaxed) &&
          !slot->taken.exchange(true, std::memory_order_acquire)) {
        return slot;
      }
    }
    auto slot = std::make_unique<Slot>();
    slot->next = first_.load();
    while (!first_.compare_exchange_weak(slot->next, slot.get())) {
    }
    return slot.release();
  }
  void Give(Slot* slot) { slot->taken.store(false, std::memory_order_release); }

  // Calls fn(value) for every slot, taken or not.
  template <typename Fn>
  void ForEach(const Fn& fn) const {
    for (const Slot* slot = first_.load(); slot != nullptr; slot = slot->next) fn(slot->value);
  }

 private:
  std::atomic<Slot*> first_ = nullptr;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SCORE_SLOT_LIST_H_
