#include "trainer/experiment/config_defaults.h"

#include <cstdint>
#include <type_traits>

#include "glog/logging.h"

namespace elastor {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A field for which 0 is no value of its own.
template <typename T>
T Or(T value, std::type_identity_t<T> fallback) {
  return value == 0 ? fallback : value;
}

void ResolveTokenModel(ModelConfig* model) {
  const bool public_code = model->convention() == ModelConfig::PUBLIC_CODE;
  const bool mixer = model->kind() == ModelConfig::RANK_MIXER;
  model->clear_hidden();
  model->clear_batch_norm();
  model->set_blocks(Or(model->blocks(), 2));

  TokenizerConfig* tokenizer = model->mutable_tokenizer();
  if (tokenizer->kind() == TokenizerConfig::CONVENTION) {
    tokenizer->set_kind(public_code ? TokenizerConfig::SHARED : TokenizerConfig::GROUPED);
    if (public_code) tokenizer->set_hidden(Or(tokenizer->hidden(), 500));
  }
  tokenizer->set_norm(
      Or(tokenizer->norm(), public_code ? TokenizerConfig::NORM_RMS : TokenizerConfig::NORM_NONE));

  if (mixer) {
    model->clear_mixing();
  } else {
    model->mutable_mixing()->set_block_width(Or(model->mixing().block_width(), 1));
  }

  FeedForwardConfig* feed_forward = model->mutable_feed_forward();
  const auto gated = public_code ? FeedForwardConfig::GATED_SUM : FeedForwardConfig::GATED;
  feed_forward->set_kind(Or(feed_forward->kind(), mixer ? FeedForwardConfig::TWO_LAYER : gated));
  feed_forward->set_activation(Or(feed_forward->activation(), FeedForwardConfig::GELU));
  feed_forward->set_expansion(
      Or(feed_forward->expansion(), feed_forward->kind() == FeedForwardConfig::TWO_LAYER ? 1 : 3));

  HeadConfig* head = model->mutable_head();
  head->set_kind(
      Or(head->kind(), public_code ? HeadConfig::FLATTEN_MLP : HeadConfig::FLATTEN_LINEAR));
  if (head->kind() != HeadConfig::FLATTEN_MLP) {
    head->clear_hidden();
  } else if (head->hidden().empty()) {
    head->add_hidden(static_cast<int32_t>(int64_t{2} * model->tokens() * model->token_width()));
  }
}

void ResolveMlp(ModelConfig* model) {
  ModelConfig mlp;
  mlp.set_kind(ModelConfig::MLP);
  mlp.set_dropout(model->dropout());
  mlp.set_batch_norm(model->batch_norm());
  *mlp.mutable_hidden() = model->hidden();
  if (mlp.hidden().empty()) {
    for (int i = 0; i < 3; ++i) mlp.add_hidden(400);
  }
  *model = mlp;
}

// Sets every optional field that is unset to its value, 0, so that it is written out.
void MakeExplicit(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    const bool present = field->has_presence() && reflection.HasField(*message, field);
    if (field->message_type() != nullptr) {
      if (present) MakeExplicit(reflection.MutableMessage(message, field));
      continue;
    }
    if (present || !field->has_presence()) continue;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        reflection.SetInt64(message, field, 0);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        reflection.SetDouble(message, field, 0);
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection.SetBool(message, field, false);
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        reflection.SetEnum(message, field, field->default_value_enum());
        break;
      default:
        LOG(FATAL) << field->full_name() << ": no optional field has this type yet";
    }
  }
}

}  // namespace

void ResolveDefaults(Experiment* experiment) {
  DataConfig* data = experiment->mutable_data();
  data->set_window_blocks(Or(data->window_blocks(), 64));
  data->set_reader_threads(Or(data->reader_threads(), 1));

  ModelConfig* model = experiment->mutable_model();
  if (model->kind() == ModelConfig::MLP) {
    ResolveMlp(model);
  } else {
    ResolveTokenModel(model);
  }
  if (experiment->name().empty()) experiment->set_name(ModelConfig::Kind_Name(model->kind()));

  EmbeddingConfig* embedding = experiment->mutable_embedding();
  embedding->set_init_stddev(Or(embedding->init_stddev(), 1e-4));

  OptimizerConfig* optimizer = experiment->mutable_optimizer();
  optimizer->set_learning_rate(Or(optimizer->learning_rate(), 1e-3));
  optimizer->set_beta1(Or(optimizer->beta1(), 0.9));
  optimizer->set_beta2(Or(optimizer->beta2(), 0.999));
  optimizer->set_epsilon(Or(optimizer->epsilon(), 1e-8));

  TrainingConfig* training = experiment->mutable_training();
  training->set_epochs(Or(training->epochs(), 1));
  training->set_log_every_steps(Or(training->log_every_steps(), 50));
  training->set_eval_batch_size(Or(training->eval_batch_size(), training->batch_size()));

  ScheduleConfig* schedule = training->mutable_schedule();
  schedule->set_plateau_patience(Or(schedule->plateau_patience(), 1));
  training->mutable_monitor();
  training->mutable_warm_start();

  SpectrumConfig* spectrum = experiment->mutable_spectrum();
  spectrum->set_every_steps(Or(spectrum->every_steps(), 200));
  spectrum->set_samples(Or(spectrum->samples(), 1024));

  ParallelConfig* parallel = experiment->mutable_parallel();
  parallel->set_virtual_shards(Or(parallel->virtual_shards(), 16));
  parallel->set_threads(Or(parallel->threads(), 1));
  parallel->set_deadline_seconds(Or(parallel->deadline_seconds(), 300));
  if (!parallel->has_reproducible()) parallel->set_reproducible(true);

  EvaluationConfig* evaluation = experiment->mutable_evaluation();
  evaluation->set_slice_values(Or(evaluation->slice_values(), 20));
  CheckpointConfig* checkpoint = experiment->mutable_checkpoint();
  checkpoint->set_keep(Or(checkpoint->keep(), 3));
  checkpoint->set_staging_bytes(Or(checkpoint->staging_bytes(), int64_t{8} << 30));
  MakeExplicit(experiment);
}

}  // namespace elastor
