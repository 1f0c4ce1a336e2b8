#ifndef ELASTOR_TRAINER_SERVE_FOLLOWER_H_
#define ELASTOR_TRAINER_SERVE_FOLLOWER_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "trainer/score/elastor_score.h"
#include "trainer/serve/service.h"

namespace elastor {

// Looks into a folder of publications again and again on a thread of its own, opens the model once
// there is a base, and takes what is new.
class Follower {
 public:
  // `service` outlives the object. report: called with a line when the model is open, and when an
  // update fails otherwise than the one before.
  Follower(const std::string& folder, double interval_s, Service* service,
           std::function<void(const std::string&)> report);
  ~Follower();  // waits for the thread; then closes the model, which nobody may use

 private:
  void Run();
  // Returns the line of a failure; empty: there is none.
  std::string Look();

  const std::string folder_;
  const double interval_s_;
  Service& service_;
  const std::function<void(const std::string&)> report_;
  elastor_model* model_ = nullptr;  // the thread's
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_SERVE_FOLLOWER_H_
