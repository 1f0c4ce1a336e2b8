#include "trainer/checkpoint/digest_records.h"

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <map>

#include "core/base/log.h"

namespace elastor {
namespace {

using google::protobuf::FieldDescriptor;

// A field's value; empty: 0, false or "".
std::string ValueText(const ControlRecord& control, const FieldDescriptor& field) {
  const google::protobuf::Reflection& values = *control.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64: {
      const int64_t value = values.GetInt64(control, &field);
      return value == 0 ? "" : std::to_string(value);
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      return values.GetBool(control, &field) ? "true" : "";
    case FieldDescriptor::CPPTYPE_STRING:
      return values.GetString(control, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = values.GetDouble(control, &field);
      char text[17];
      std::snprintf(text, sizeof(text), "%016" PRIx64, std::bit_cast<uint64_t>(value));
      return value == 0 ? "" : text;
    }
    default:
      LOG(FATAL) << field.full_name() << ": a type without a text";
  }
}

}  // namespace

uint64_t RowSeed(const std::string& table) { return Digest::NameSeed("embedding/" + table); }

void AddDenseTensor(const std::string& tensor, std::span<const float> values, Digest* digest) {
  digest->Add("dense/" + tensor, 0, values.data(), values.size_bytes());
}

void AddControl(const ControlRecord& control, Digest* digest) {
  std::map<std::string, std::string> texts;
  const google::protobuf::Descriptor& descriptor = *ControlRecord::descriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const std::string value = ValueText(control, *descriptor.field(i));
    if (!value.empty()) texts[descriptor.field(i)->name()] = value;
  }
  std::string record;
  for (const auto& [name, value] : texts) record += name + "=" + value + "\n";
  digest->Add("control", 0, record.data(), record.size());
}

StatusOr<std::string> SumDigest(const Digest& part, Communicator& communicator) {
  auto words = part.ToWords();
  ELASTOR_RETURN_IF_ERROR(communicator.AllReduceSum(Phase::kSetup, words));
  return Digest::FromWords(words).Hex();
}

}  // namespace elastor
