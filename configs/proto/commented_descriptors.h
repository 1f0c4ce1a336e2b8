#ifndef ELASTOR_CONFIGS_PROTO_COMMENTED_DESCRIPTORS_H_
#define ELASTOR_CONFIGS_PROTO_COMMENTED_DESCRIPTORS_H_

#include "google/protobuf/descriptor.h"

namespace elastor {

// experiment.proto, sweep.proto and schema.proto as they are written: with their comments
// (Descriptor::GetSourceLocation), which generated code does not have.
const google::protobuf::DescriptorPool& CommentedDescriptors();

}  // namespace elastor

#endif  // ELASTOR_CONFIGS_PROTO_COMMENTED_DESCRIPTORS_H_
