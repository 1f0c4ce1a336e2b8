#include "trainer/experiment/config_checks.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/models/models.h"
#include "embedding/row_rules.h"
#include "trainer/experiment/model_choice.h"
#include "trainer/fields/field_rules.h"

namespace elastor {
namespace {

// T * D beyond this is a slip of the hand: full mixing has (T * D)^2 weights.
constexpr int64_t kMaxTokenFeatures = 1 << 17;

// Larger sizes of a model and longer lists of them are slips of the hand, too. Products of a few
// sizes stay below 2^63.
constexpr int32_t kLargestSize = 1'000'000;
constexpr int kMostLayers = 1000;

// "model.mlp.hidden: 0; expected what".
Status Mistake(const std::string& field, const std::string& found, const std::string& expected) {
  return UserError(field + ": " + found + "; expected " + expected);
}

// Bounds every size in a message, and every list of sizes.
Status CheckSizes(const std::string& prefix, const google::protobuf::Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    const std::string path = prefix + field->name();
    const bool list = field->is_repeated();
    if (field->message_type() != nullptr && !list) {
      ELASTOR_RETURN_IF_ERROR(CheckSizes(path + ".", reflection.GetMessage(message, field)));
    }
    if (field->cpp_type() != field->CPPTYPE_INT32) continue;
    const int count = list ? reflection.FieldSize(message, field) : 1;
    if (count > kMostLayers) {
      return Mistake(path, std::to_string(count) + " numbers",
                     "at most " + std::to_string(kMostLayers));
    }
    for (int i = 0; i < count; ++i) {
      const int32_t size = list ? reflection.GetRepeatedInt32(message, field, i)
                                : reflection.GetInt32(message, field);
      if (size <= kLargestSize) continue;
      return Mistake(path, std::to_string(size), "at most " + std::to_string(kLargestSize));
    }
  }
  return OkStatus();
}

// What the fields of a token model must be to each other. `path`: "model.rank_elastor".
Status CheckTokenModel(const std::string& path, const TokenModelConfig& model) {
  const int64_t features = int64_t{model.tokens()} * model.token_width();
  if (features > kMaxTokenFeatures) {
    return Mistake(path + ".tokens * token_width", std::to_string(features),
                   StrCat("at most ", kMaxTokenFeatures));
  }
  return OkStatus();
}

// `who`: what swaps the blocks.
Status CheckBlockTranspose(const std::string& path, const std::string& who,
                           const TokenModelConfig& model) {
  const int32_t rest = model.token_width() % model.tokens();
  if (rest == 0) return OkStatus();
  const int32_t above = model.token_width() - rest + model.tokens();
  const std::string below = above == model.tokens() ? "" : StrCat(above - model.tokens(), " or ");
  const std::string tokens = std::to_string(model.tokens());
  return UserError(StrCat(path, ".token_width: ", model.token_width(), " is not a multiple of ",
                          path, ".tokens ", tokens, "; ", who, " swaps ", tokens, " x ", tokens,
                          " blocks of D / T columns; expected ", below, above,
                          " (--mode=describe lists shapes that fit)"));
}

Status CheckRankElastor(const TokenModelConfig& model) {
  const std::string path = "model.rank_elastor";
  ELASTOR_RETURN_IF_ERROR(CheckTokenModel(path, model));
  const MixingConfig& mixing = model.mixing();
  const std::string block = std::to_string(mixing.block_width());
  if (mixing.kind() != MixingConfig::LEARNED && mixing.block_width() > 1) {
    return Mistake(path + ".mixing.block_width", block,
                   "1, as mixing.kind is not LEARNED and has no map");
  }
  if (mixing.kind() == MixingConfig::BLOCK_TRANSPOSE) {
    return CheckBlockTranspose(path, "mixing.kind: BLOCK_TRANSPOSE", model);
  }
  const int64_t features = int64_t{model.tokens()} * model.token_width();
  if (!model.has_mixing() || features % mixing.block_width() == 0) return OkStatus();
  return Mistake(path + ".mixing.block_width", block,
                 StrCat("a divisor of tokens * token_width = ", features));
}

Status CheckRankMixer(const TokenModelConfig& model) {
  ELASTOR_RETURN_IF_ERROR(CheckTokenModel("model.rank_mixer", model));
  if (model.has_mixing()) {
    return UserError(
        "model.rank_mixer.mixing: RankMixer swaps blocks of tokens and has no such map; expected "
        "none, or rank_elastor");
  }
  return CheckBlockTranspose("model.rank_mixer", "RANK_MIXER", model);
}

Status CheckAutoInt(const AutoIntConfig& model) {
  if (model.attention_width() % model.heads() != 0) {
    return Mistake("model.auto_int.heads", std::to_string(model.heads()),
                   StrCat("a divisor of attention_width = ", model.attention_width()));
  }
  if (!model.hidden().empty() || (!model.batch_norm() && model.dropout() == 0)) return OkStatus();
  return Mistake("model.auto_int.hidden", "empty",
                 "hidden layers for batch_norm and dropout to act on");
}

Status CheckFinalMlp(const FinalMlpConfig& model) {
  const int32_t first = *model.hidden1().rbegin(), second = *model.hidden2().rbegin();
  if (first % model.heads() == 0 && second % model.heads() == 0) return OkStatus();
  return Mistake(
      "model.final_mlp.heads", std::to_string(model.heads()),
      StrCat("a divisor of the last hidden1 = ", first, " and the last hidden2 = ", second));
}

Status CheckFinalNet(const FinalNetConfig& model) {
  for (const auto& [field, widths] :
       {std::pair("hidden1", &model.hidden1()), std::pair("hidden2", &model.hidden2())}) {
    for (const int32_t width : *widths) {
      if (width % 2 == 0) continue;
      return Mistake(std::string("model.final_net.") + field, std::to_string(width),
                     "even numbers, as half of a layer's features are products");
    }
  }
  return OkStatus();
}

Status CheckTokenMixerLarge(const TokenMixerLargeConfig& model) {
  const std::string path = "model.token_mixer_large";
  const int64_t features = int64_t{model.tokens()} * model.token_width();
  if (features > kMaxTokenFeatures) {
    return Mistake(path + ".tokens * token_width", std::to_string(features),
                   StrCat("at most ", kMaxTokenFeatures));
  }
  if (model.token_width() % model.tokens() == 0) return OkStatus();
  return Mistake(path + ".token_width", std::to_string(model.token_width()),
                 StrCat("a multiple of tokens = ", model.tokens()));
}

Status CheckUniMixer(const UniMixerConfig& model) {
  const std::string path = "model.uni_mixer";
  const int64_t features = int64_t{model.tokens()} * model.token_width();
  if (features > kMaxTokenFeatures) {
    return Mistake(path + ".tokens * token_width", std::to_string(features),
                   StrCat("at most ", kMaxTokenFeatures));
  }
  if (features % model.block_width() != 0 || features == model.block_width()) {
    return Mistake(path + ".block_width", std::to_string(model.block_width()),
                   StrCat("a divisor of tokens * token_width = ", features, " and less than it"));
  }
  if ((model.rank() > 0) == (model.basis() > 0)) return OkStatus();
  return Mistake(path + ".basis", std::to_string(model.basis()),
                 model.rank() > 0 ? StrCat("a positive number, as rank is ", model.rank())
                                  : "0, as rank is 0");
}

Status CheckOneTrans(const OneTransConfig& model) {
  const std::string path = "model.one_trans";
  const int64_t features = int64_t{model.tokens()} * model.token_width();
  if (features > kMaxTokenFeatures) {
    return Mistake(path + ".tokens * token_width", std::to_string(features),
                   StrCat("at most ", kMaxTokenFeatures));
  }
  if (model.token_width() % model.heads() == 0) return OkStatus();
  return Mistake(path + ".heads", std::to_string(model.heads()),
                 StrCat("a divisor of token_width = ", model.token_width()));
}

// Checks the roles of the histories' lists, each of which has one.
Status CheckHstuRanker(const HstuRankerConfig& model, const SequencesConfig& sequences) {
  const std::string path = "model.hstu_ranker";
  if (sequences.fields().empty()) {
    return Mistake("model.sequences.fields", "empty",
                   "names of SEQUENCE fields, as model.hstu_ranker reads a history");
  }
  if (!sequences.has_tokens()) {
    return Mistake("model.sequences", "an encoder",
                   "none, or tokens { }, as model.hstu_ranker reads the history itself");
  }
  std::vector<std::string> named;
  for (const auto& [field, names] :
       {std::pair("actions", &model.actions()), std::pair("times", &model.times())}) {
    for (const std::string& name : *names) {
      if (std::ranges::count(sequences.fields(), name) == 0) {
        return Mistake(path + "." + field, "'" + name + "'", "names of model.sequences.fields");
      }
      if (std::ranges::count(named, name) > 0) {
        return Mistake(path + "." + field, "'" + name + "' again", "each name once");
      }
      named.push_back(name);
    }
  }
  if (std::ssize(named) == sequences.fields_size()) {
    return Mistake("model.sequences.fields", "actions and times alone",
                   "one list of items at least, in neither model.hstu_ranker.actions nor times");
  }
  for (const auto& [field, width] : {std::pair("attention_width", model.attention_width()),
                                     std::pair("linear_width", model.linear_width())}) {
    const int64_t features = int64_t{model.heads()} * width;
    if (features <= kMaxTokenFeatures) continue;
    return Mistake(path + ".heads * " + field, std::to_string(features),
                   StrCat("at most ", kMaxTokenFeatures));
  }
  return OkStatus();
}

// `width`: of the embeddings.
Status CheckMatrixThinker(const MatrixThinkerConfig& model, int64_t width) {
  if (width % 2 != 0) {
    return Mistake("embedding.width", std::to_string(width),
                   "an even number, as model.matrix_thinker makes a matrix of two halves");
  }
  if (width / 2 % model.heads() == 0) return OkStatus();
  return Mistake("model.matrix_thinker.heads", std::to_string(model.heads()),
                 StrCat("a divisor of d = embedding.width / 2 = ", width / 2));
}

Status CheckTransformer(const TransformerConfig& model, int64_t width) {
  if (width % model.heads() == 0) return OkStatus();
  return Mistake("model.transformer.heads", std::to_string(model.heads()),
                 StrCat("a divisor of embedding.width = ", width));
}

Status CheckVit(const VitConfig& model) {
  if (model.width() % model.heads() == 0) return OkStatus();
  return Mistake("model.vit.heads", std::to_string(model.heads()),
                 StrCat("a divisor of width = ", model.width()));
}

// Returns how many of the sequences have a target.
int64_t CountTargets(const ModelConfig& model) {
  return std::ranges::count_if(model.sequences().fields(), [&](const std::string& name) {
    return !model.has_hstu_ranker() || IsContent(model.hstu_ranker(), name);
  });
}

// `width`: of a row of the tables.
Status CheckSequences(const ModelConfig& model, int64_t width) {
  const SequencesConfig& sequences = model.sequences();
  if (sequences.fields().empty()) {
    return Mistake("model.sequences.fields", "empty", "names of SEQUENCE fields");
  }
  const int64_t targets = CountTargets(model);
  if (!sequences.targets().empty() && sequences.targets_size() != targets) {
    return Mistake("model.sequences.targets", StrCat(sequences.targets_size(), " names"),
                   StrCat("none, or one for each of the ", targets, " model.sequences.fields",
                          targets < sequences.fields_size() ? " of items" : ""));
  }
  if (sequences.encoder_case() == SequencesConfig::ENCODER_NOT_SET) {
    return Mistake("model.sequences", "no encoder", "mean, din, hstu, bst or tokens");
  }
  if (sequences.has_bst() && width % sequences.bst().heads() != 0) {
    return Mistake("model.sequences.bst.heads", std::to_string(sequences.bst().heads()),
                   StrCat("a divisor of ", width, ", the width of the embeddings",
                          " with first-order weights if there are any"));
  }
  return OkStatus();
}

Status CheckModel(const ModelConfig& model, int64_t width) {
  if (model.has_lr() && width != 1) {
    return Mistake("embedding.width", std::to_string(width),
                   "1, as the embeddings of model.lr are its weights");
  }
  if (model.has_dcn_v3() && width % 2 != 0) {
    return Mistake("embedding.width", std::to_string(width),
                   "an even number, as model.dcn_v3 halves every embedding");
  }
  if (model.has_matrix_thinker()) return CheckMatrixThinker(model.matrix_thinker(), width);
  if (model.has_transformer()) return CheckTransformer(model.transformer(), width);
  if (model.has_hstu_ranker()) {
    ELASTOR_RETURN_IF_ERROR(CheckHstuRanker(model.hstu_ranker(), model.sequences()));
  }
  if (model.has_sequences()) {
    const int64_t row_width = width + (HasFirstOrder(model) ? 1 : 0);
    ELASTOR_RETURN_IF_ERROR(CheckSequences(model, row_width));
    if (model.sequences().has_tokens() && !model.has_one_trans() && !model.has_hstu_ranker()) {
      return Mistake("model.sequences", "tokens",
                     "mean, din, hstu or bst, as only ONE_TRANS and HSTU_RANKER read tokens");
    }
  }
  if (model.has_rank_elastor()) return CheckRankElastor(model.rank_elastor());
  if (model.has_rank_mixer()) return CheckRankMixer(model.rank_mixer());
  if (model.has_auto_int()) return CheckAutoInt(model.auto_int());
  if (model.has_token_mixer_large()) return CheckTokenMixerLarge(model.token_mixer_large());
  if (model.has_uni_mixer()) return CheckUniMixer(model.uni_mixer());
  if (model.has_one_trans()) return CheckOneTrans(model.one_trans());
  if (model.has_final_net()) return CheckFinalNet(model.final_net());
  if (model.has_final_mlp()) return CheckFinalMlp(model.final_mlp());
  if (model.has_vit()) return CheckVit(model.vit());
  return OkStatus();
}

// Deltas are of few rows.
Status CheckDeltas(const CheckpointConfig& checkpoint, const OptimizerConfig& optimizer) {
  const bool by_steps = checkpoint.delta_every_steps() > 0;
  if (optimizer.sparse() != OptimizerConfig::DENSE_ADAM ||
      (!by_steps && checkpoint.delta_every_minutes() == 0)) {
    return OkStatus();
  }
  return Mistake(by_steps ? "checkpoint.delta_every_steps" : "checkpoint.delta_every_minutes",
                 by_steps ? std::to_string(checkpoint.delta_every_steps())
                          : Format("%g", checkpoint.delta_every_minutes()),
                 "0, as optimizer.sparse: DENSE_ADAM changes every row at every step");
}

// It is flushed to 0. A row without a gradient would become NaN by 0 / 0, and one with a tiny
// gradient infinite, as its square is flushed too.
Status CheckDenseAdam(const OptimizerConfig& optimizer) {
  constexpr float kLeast = std::numeric_limits<float>::min();
  if (optimizer.sparse() != OptimizerConfig::DENSE_ADAM ||
      static_cast<float>(optimizer.epsilon()) >= kLeast) {
    return OkStatus();
  }
  return Mistake(
      "optimizer.epsilon", Format("%g", optimizer.epsilon()),
      "1.18e-38 or more, as optimizer.sparse: DENSE_ADAM divides by it where a row has no "
      "gradient");
}

Status CheckAdmission(const std::string& path, const TableConfig& table) {
  constexpr int64_t kMostCounters = int64_t{1} << 41;
  const AdmissionConfig& admission = table.admission();
  const bool sketched = admission.counter() == AdmissionConfig::COUNT_MIN;
  const auto mistake = [&](const std::string& field, int64_t found, const std::string& expected) {
    return Mistake(path + "." + field, std::to_string(found), expected);
  };
  if (admission.min_count() > kMostCount) {
    return mistake("admission.min_count", admission.min_count(), StrCat("at most ", kMostCount));
  }
  if (admission.min_count() <= 1) {
    const char* const needless = sketched                          ? "admission.counter"
                                 : admission.count_ttl_steps() > 0 ? "admission.count_ttl_steps"
                                 : admission.sketch_counters() > 0 ? "admission.sketch_counters"
                                 : table.unadmitted() != TableConfig::ZERO ? "unadmitted"
                                                                           : nullptr;
    if (needless == nullptr) return OkStatus();
    return mistake("admission.min_count", admission.min_count(),
                   StrCat("2 or more, as ", needless, " is set"));
  }
  if (sketched && admission.count_ttl_steps() > 0) {
    return mistake("admission.count_ttl_steps", admission.count_ttl_steps(),
                   "0, as sketches do not forget; or counter: EXACT");
  }
  if (sketched ? admission.sketch_counters() == 0 || admission.sketch_counters() > kMostCounters
               : admission.sketch_counters() > 0) {
    return mistake(
        "admission.sketch_counters", admission.sketch_counters(),
        sketched ? StrCat("a number up to ", kMostCounters, ", or a capacity that it is made of")
                 : "0, as counter is EXACT");
  }
  return OkStatus();
}

// Numbers of other policies than the chosen one, and rules by which no row would ever leave, are
// slips.
Status CheckTable(const std::string& path, const TableConfig& table) {
  const EvictionConfig& eviction = table.eviction();
  using Policy = EvictionConfig;
  const std::string policy = EvictionConfig::Policy_Name(eviction.policy());
  if (table.fields().empty()) return Mistake(path + ".fields", "empty", "names of keyed fields");
  struct Number {
    const char* name;
    double value;
    EvictionConfig::Policy policy;
  };
  for (const Number& number :
       {Number{"ttl_steps", static_cast<double>(eviction.ttl_steps()), Policy::TTL_STEPS},
        Number{"ttl_seconds", static_cast<double>(eviction.ttl_seconds()), Policy::TTL_EVENT_TIME},
        Number{"half_life_steps", static_cast<double>(eviction.half_life_steps()),
               Policy::DECAYED_LFU},
        Number{"min_l2", eviction.min_l2(), Policy::L2}}) {
    if ((number.value > 0) == (number.policy == eviction.policy())) continue;
    return Mistake(path + ".eviction." + number.name, Format("%g", number.value),
                   number.value > 0 ? "0, as policy is " + policy
                                    : "a positive number, as policy is " + policy);
  }
  ELASTOR_RETURN_IF_ERROR(CheckAdmission(path, table));
  const bool evicts = eviction.policy() != EvictionConfig::NONE;
  const bool when_full = table.on_full() == TableConfig::EVICT;
  if (when_full && !evicts)
    return Mistake(path + ".eviction.policy", "NONE", "a policy for on_full: EVICT");
  if (when_full && table.capacity() == 0) {
    return Mistake(path + ".capacity", "0", "a number of rows, as on_full is EVICT");
  }
  if (!evicts && table.evict_every_steps() > 0) {
    return Mistake(path + ".evict_every_steps", std::to_string(table.evict_every_steps()),
                   "0, as eviction.policy is NONE");
  }
  if (evicts && !when_full && table.evict_every_steps() == 0) {
    return Mistake(path + ".evict_every_steps", "0",
                   "steps between two passes, or on_full: EVICT, as eviction.policy is " + policy);
  }
  const bool by_limit = eviction.policy() == EvictionConfig::TTL_STEPS ||
                        eviction.policy() == EvictionConfig::TTL_EVENT_TIME ||
                        eviction.policy() == EvictionConfig::L2;
  if (table.capacity() > 0 && eviction.evict_to() > table.capacity()) {
    return Mistake(path + ".eviction.evict_to", std::to_string(eviction.evict_to()),
                   StrCat("at most the capacity, ", table.capacity()));
  }
  if (evicts && (when_full || !by_limit) && eviction.evict_to() == 0) {
    return Mistake(path + ".eviction.evict_to", "0", "the rows that a pass leaves");
  }
  return OkStatus();
}

Status CheckPublish(const PublishConfig& publish) {
  const bool by_steps = publish.every_steps() > 0;
  if (publish.path().empty() != (by_steps || publish.every_minutes() > 0)) {
    if (!publish.path().empty() || publish.rows() == PublishConfig::FLOAT32) return OkStatus();
    return Mistake("publish.path", "\"\"", "a folder, as publish.rows is set");
  }
  return publish.path().empty()
             ? Mistake(
                   "publish.path", "\"\"",
                   StrCat("a folder, as publish.every_", by_steps ? "steps" : "minutes", " is set"))
             : Mistake("publish.every_steps", "0",
                       "steps between two publications, or publish.every_minutes");
}

Status CheckTier(const TierConfig& tier, const OptimizerConfig& optimizer) {
  if (tier.path().empty() != (tier.memory_bytes() == 0)) {
    return tier.path().empty()
               ? Mistake("embedding.tier.path", "\"\"",
                         "a folder on a local disk, as embedding.tier.memory_bytes is set")
               : Mistake("embedding.tier.memory_bytes", "0",
                         "bytes of rows in memory, as embedding.tier.path is set");
  }
  if (tier.path().empty() || optimizer.sparse() != OptimizerConfig::DENSE_ADAM) return OkStatus();
  return Mistake("embedding.tier.path", tier.path(),
                 "none, as optimizer.sparse: DENSE_ADAM needs every row at every step");
}

}  // namespace

Status ValidateExperiment(const Experiment& experiment) {
  ELASTOR_RETURN_IF_ERROR(CheckFields("", experiment));
  ELASTOR_RETURN_IF_ERROR(CheckModel(experiment.model(), experiment.embedding().width()));
  ELASTOR_RETURN_IF_ERROR(CheckSizes("model.", experiment.model()));
  ELASTOR_RETURN_IF_ERROR(CheckSizes("embedding.", experiment.embedding()));
  ELASTOR_RETURN_IF_ERROR(CheckDeltas(experiment.checkpoint(), experiment.optimizer()));
  ELASTOR_RETURN_IF_ERROR(CheckDenseAdam(experiment.optimizer()));
  ELASTOR_RETURN_IF_ERROR(CheckPublish(experiment.publish()));
  ELASTOR_RETURN_IF_ERROR(CheckTier(experiment.embedding().tier(), experiment.optimizer()));
  for (int i = 0; i < experiment.embedding().tables_size(); ++i) {
    ELASTOR_RETURN_IF_ERROR(
        CheckTable(StrCat("embedding.tables ", i + 1), experiment.embedding().tables(i)));
    const EvictionConfig& eviction = experiment.embedding().tables(i).eviction();
    if (eviction.policy() == EvictionConfig::TTL_EVENT_TIME &&
        experiment.data().order() != DataConfig::FILE_ORDER) {
      return Mistake(
          "data.order", DataConfig::Order_Name(experiment.data().order()),
          StrCat("FILE_ORDER, as embedding.tables ", i + 1, ".eviction.policy is TTL_EVENT_TIME"));
    }
  }
  const int32_t iterations = experiment.evaluation().iterations();
  ModelConfig model = experiment.model();
  if (iterations > 0 && !SetIterations(iterations, &model)) {
    return Mistake("evaluation.iterations", std::to_string(iterations),
                   "0, as the model does not apply its blocks repeatedly");
  }
  if (experiment.parallel().plan() == ParallelConfig::PLANNED &&
      experiment.parallel().machine().empty()) {
    return UserError(
        "parallel.machine: empty; expected the file of a machine, by which plan PLANNED chooses "
        "(--mode=calibrate measures one)");
  }
  const int64_t batch = experiment.training().batch_size();
  const int64_t shards = experiment.parallel().virtual_shards();
  if (batch >= shards) return OkStatus();
  return UserError(StrCat("training.batch_size: ", batch, " is less than parallel.virtual_shards ",
                          shards, "; expected at least one row for each"));
}

Status ValidateRanks(const Experiment& experiment, int ranks) {
  const int shards = experiment.parallel().virtual_shards();
  if (ranks >= 1 && ranks <= shards) return OkStatus();
  return UserError(StrCat(
      "parallel.virtual_shards: ", shards, " cannot be spread over ", ranks, " ranks; expected ",
      shards == 1 ? "1 rank" : StrCat("1 to ", shards, " ranks"), ", or more virtual shards"));
}

}  // namespace elastor
