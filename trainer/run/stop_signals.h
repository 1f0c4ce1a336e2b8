#ifndef ELASTOR_TRAINER_RUN_STOP_SIGNALS_H_
#define ELASTOR_TRAINER_RUN_STOP_SIGNALS_H_

namespace elastor {

// While the object lives, SIGINT, SIGTERM and SIGUSR1 no longer end the process but are remembered,
// so that a run can write a checkpoint and leave. The second signal of a kind ends the process as
// it would without the object. One object at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The first signal that came, or 0.
  int received() const;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_RUN_STOP_SIGNALS_H_
