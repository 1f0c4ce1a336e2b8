#include "trainer/experiment/config_defaults.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "core/base/log.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/fields/field_values.h"

namespace elastor {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// What conventions and kinds decide about fields that are left out.
void ResolveTokenModel(bool mixer, TokenModelConfig* model) {
  const bool public_code = model->convention() == TokenModelConfig::PUBLIC_CODE;

  TokenizerConfig* tokenizer = model->mutable_tokenizer();
  if (tokenizer->kind() == TokenizerConfig::CONVENTION) {
    tokenizer->set_kind(public_code ? TokenizerConfig::SHARED : TokenizerConfig::GROUPED);
    if (public_code && !tokenizer->has_hidden()) tokenizer->set_hidden(500);
  }
  if (tokenizer->hidden() == 0) tokenizer->clear_hidden();  // one way to say it: one hash
  if (tokenizer->norm() == TokenizerConfig::NORM_CONVENTION) {
    tokenizer->set_norm(public_code ? TokenizerConfig::NORM_RMS : TokenizerConfig::NORM_NONE);
  }

  FeedForwardConfig* feed_forward = model->mutable_feed_forward();
  if (feed_forward->kind() == FeedForwardConfig::FFN_CONVENTION) {
    const auto gated = public_code ? FeedForwardConfig::GATED_SUM : FeedForwardConfig::GATED;
    feed_forward->set_kind(mixer ? FeedForwardConfig::TWO_LAYER : gated);
  }
  if (!feed_forward->has_expansion()) {
    feed_forward->set_expansion(feed_forward->kind() == FeedForwardConfig::TWO_LAYER ? 1 : 3);
  }

  HeadConfig* head = model->mutable_head();
  if (head->kind() == HeadConfig::HEAD_CONVENTION) {
    head->set_kind(public_code ? HeadConfig::FLATTEN_MLP : HeadConfig::FLATTEN_LINEAR);
  }
  if (head->kind() != HeadConfig::MULTI_PROBE) {
    head->clear_probes();
  } else if (!head->has_probes()) {
    head->set_probes(32);
  }
  if (head->kind() != HeadConfig::FLATTEN_MLP) {
    head->clear_hidden();
  } else if (head->hidden().empty()) {
    const int64_t width = int64_t{2} * model->tokens() * model->token_width();
    head->add_hidden(
        static_cast<int32_t>(std::min<int64_t>(width, std::numeric_limits<int32_t>::max())));
  }
}

void ResolveModel(ModelConfig* model) {
  if (ChosenModel(*model) == nullptr) model->mutable_rank_elastor();
  if (model->has_rank_elastor()) ResolveTokenModel(false, model->mutable_rank_elastor());
  if (model->has_rank_mixer()) ResolveTokenModel(true, model->mutable_rank_mixer());
  SequencesConfig* const sequences = model->has_sequences() ? model->mutable_sequences() : nullptr;
  if (model->has_hstu_ranker() && sequences != nullptr &&
      sequences->encoder_case() == SequencesConfig::ENCODER_NOT_SET) {
    sequences->mutable_tokens();  // the only one that it takes
  }
}

// Gives every field that is left out, at all levels, the default of its rule; an optional field
// without one becomes 0, so that it is written out. One whose default depends on other fields stays
// as it is.
void FillDefaults(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->options().deprecated()) continue;
    const bool given = field->is_repeated() ? reflection.FieldSize(*message, field) > 0
                                            : reflection.HasField(*message, field);
    if (field->message_type() != nullptr) {
      if (!given && field->real_containing_oneof() != nullptr) continue;
      if (field->is_repeated()) {
        for (int j = 0; j < reflection.FieldSize(*message, field); ++j) {
          FillDefaults(reflection.MutableRepeatedMessage(message, field, j));
        }
        continue;
      }
      FillDefaults(reflection.MutableMessage(message, field));
      const bool empty = reflection.GetMessage(*message, field).ByteSizeLong() == 0;
      if (!given && empty) reflection.ClearField(message, field);
      continue;
    }
    const FieldRule& field_rule = field->options().GetExtension(rule);
    if (given || !field_rule.default_words().empty()) continue;
    std::string value = field_rule.default_();
    if (value.empty() && !field->has_presence()) continue;
    if (value.empty()) {
      value = field->enum_type() == nullptr ? "0" : field->default_value_enum()->name();
    }
    const Status set = SetField(*field, value, message);
    CHECK(set.ok()) << field->full_name() << ": " << set.message();
  }
}

}  // namespace

void ResolveDefaults(Experiment* experiment) {
  constexpr int64_t kMostSketched = int64_t{1} << 40;
  ModelConfig* model = experiment->mutable_model();
  ResolveModel(model);
  if (experiment->name().empty()) experiment->set_name(KindName(*ChosenModel(*model)));
  TrainingConfig* training = experiment->mutable_training();
  if (!training->has_eval_batch_size()) training->set_eval_batch_size(training->batch_size());

  for (TableConfig& table : *experiment->mutable_embedding()->mutable_tables()) {
    if (const AdmissionConfig& admission = table.admission();
        admission.counter() == AdmissionConfig::COUNT_MIN && !admission.has_sketch_counters()) {
      table.mutable_admission()->set_sketch_counters(2 * std::min(table.capacity(), kMostSketched));
    }
    EvictionConfig* const eviction = table.mutable_eviction();
    if (eviction->has_evict_to()) continue;
    const int64_t nine_tenths = table.capacity() / 10 * 9 + table.capacity() % 10 * 9 / 10;
    eviction->set_evict_to(std::max(nine_tenths, std::min<int64_t>(table.capacity(), 1)));
  }

  const bool mixing_given = model->rank_mixer().has_mixing();
  const bool publishes = experiment->has_publish();
  FillDefaults(experiment);
  // The texts of experiments that publish nothing are those of earlier builds.
  if (!publishes) experiment->clear_publish();
  // RankMixer has no such map; what was given is for the checks to refuse.
  if (model->has_rank_mixer() && !mixing_given) model->mutable_rank_mixer()->clear_mixing();
}

}  // namespace elastor
