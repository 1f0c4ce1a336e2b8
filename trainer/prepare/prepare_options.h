#ifndef ELASTOR_TRAINER_PREPARE_PREPARE_OPTIONS_H_
#define ELASTOR_TRAINER_PREPARE_PREPARE_OPTIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "configs/proto/schema.pb.h"

namespace elastor {

struct PrepareOptions {
  Schema schema;                    // as ReadSchemaFile returns it
  std::vector<std::string> inputs;  // in file order; none for SYNTHETIC
  std::string output_dir;
  int threads = 1;  // the output does not depend on it
  // Called now and then with the share done of what is being done; may be empty.
  std::function<void(const std::string& phase, double share)> progress;
  // Called once for each of the first few bad rows; may be empty.
  std::function<void(const std::string& message)> warn;
};

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_PREPARE_OPTIONS_H_
