#include "configs/proto/commented_descriptors.h"

#include "configs/proto/experiment.pb.h"
#include "core/base/log.h"
#include "google/protobuf/descriptor.pb.h"

namespace elastor {
namespace {

// A FileDescriptorSet of protoc.
constexpr unsigned char kDescriptors[] = {
#include "configs/proto/descriptors.inc"
};

const google::protobuf::DescriptorPool* MakePool() {
  // The options of fields are extensions, known once this is linked.
  Experiment::descriptor();
  google::protobuf::FileDescriptorSet files;
  CHECK(files.ParseFromArray(kDescriptors, sizeof(kDescriptors)));
  auto* pool = new google::protobuf::DescriptorPool;
  for (const auto& file : files.file()) CHECK(pool->BuildFile(file) != nullptr) << file.name();
  return pool;
}

}  // namespace

const google::protobuf::DescriptorPool& CommentedDescriptors() {
  static const google::protobuf::DescriptorPool* const pool = MakePool();
  return *pool;
}

}  // namespace elastor
