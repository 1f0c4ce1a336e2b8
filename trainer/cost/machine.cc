#include "trainer/cost/machine.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>
#include <variant>

#include "configs/proto/experiment.pb.h"
#include "configs/proto/machine.pb.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/kernels/cpu/isa.h"
#include "trainer/fields/field_rules.h"
#include "trainer/fields/text_message.h"

namespace elastor {
namespace {

constexpr double kElement = sizeof(float);

// Seconds of `rows` rows by measured points, linear between them and beyond the last, where more
// rows never take less.
double Interpolate(const google::protobuf::RepeatedField<int64_t>& rows,
                   const google::protobuf::RepeatedField<double>& seconds, double at) {
  const int last = rows.size() - 1;
  if (at <= static_cast<double>(rows[0]) || last == 0) {
    return at <= static_cast<double>(rows[0]) ? seconds[0]
                                              : seconds[0] * at / static_cast<double>(rows[0]);
  }
  int i = 1;
  while (i < last && static_cast<double>(rows[i]) < at) ++i;
  const auto low = static_cast<double>(rows[i - 1]);
  const double share = (at - low) / (static_cast<double>(rows[i]) - low);
  const double found = seconds[i - 1] + share * (seconds[i] - seconds[i - 1]);
  return share > 1 ? std::max(found, seconds[last]) : found;
}

Status CheckKernel(const std::string& path, const Kernel& kernel) {
  const int points = kernel.rows_size();
  if (points == 0 || kernel.forward_s_size() != points || kernel.backward_s_size() != points) {
    return UserError(StrCat(path, ": kernel '", kernel.op(), "': ", points, " rows, ",
                            kernel.forward_s_size(), " forward_s, ", kernel.backward_s_size(),
                            " backward_s; expected one of each for every number of rows"));
  }
  for (int i = 0; i < points; ++i) {
    const int64_t before = i == 0 ? 0 : kernel.rows(i - 1);
    if (kernel.rows(i) > before) continue;
    return UserError(StrCat(path, ": kernel '", kernel.op(), "': rows ", kernel.rows(i), " after ",
                            before, "; expected ascending numbers"));
  }
  return OkStatus();
}

const char* NameOf(Activation activation) {
  constexpr const char* kNames[] = {"",      " relu",    " gelu",      " swish",
                                    " tanh", " sigmoid", " leaky relu"};
  return kNames[static_cast<int>(activation)];
}

// What the time of an op depends on besides its shapes.
template <typename Op>
std::string Settings(const Op& op) {
  std::string text;
  if constexpr (requires { op.activation; }) StrAppend(&text, NameOf(op.activation));
  if constexpr (requires { op.iterations; }) StrAppend(&text, " iterations ", op.iterations);
  return text;
}

void AppendShape(const Shape& shape, std::ostringstream* text) {
  if (shape.tokens > 1) *text << shape.tokens << "x";
  *text << shape.width;
}

}  // namespace

StatusOr<Machine> ReadMachine(const std::string& path) {
  ELASTOR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Machine machine;
  ELASTOR_RETURN_IF_ERROR(ParseTextMessage(text, path, &machine));
  if (const Status fields = CheckFields("", machine); !fields.ok()) {
    return UserError(path + ": " + fields.message());
  }
  for (const Kernel& kernel : machine.kernel()) {
    ELASTOR_RETURN_IF_ERROR(CheckKernel(path, kernel));
  }
  return machine;
}

std::string MeasuredWith(const Experiment& experiment) {
  const OptimizerConfig& optimizer = experiment.optimizer();
  return StrCat("dense ", OptimizerConfig::Dense_Name(optimizer.dense()), ", sparse ",
                OptimizerConfig::Sparse_Name(optimizer.sparse()), ", ",
                TrainingConfig::Precision_Name(experiment.training().precision()), ", ",
                IsaName(ActiveIsa()));
}

StatusOr<double> ProductRate(const Machine& machine, Precision precision) {
  const auto found = [&](double rate, const char* field, const char* setting) -> StatusOr<double> {
    if (rate > 0) return rate;
    return UserError(StrCat("machine '", machine.name(), "': no ", field,
                            "; expected it for training.precision: ", setting));
  };
  switch (precision) {
    case Precision::kTf32:
      return found(machine.tf32_multiply_adds_per_s(), "tf32_multiply_adds_per_s", "TF32");
    case Precision::kBFloat16:
      return found(machine.bfloat16_multiply_adds_per_s(), "bfloat16_multiply_adds_per_s",
                   "BFLOAT16");
    default:
      return found(machine.multiply_adds_per_s(), "multiply_adds_per_s", "FLOAT32");
  }
}

std::string KernelName(const Graph& graph, int node) {
  const Node& of = graph[node];
  std::ostringstream text;
  text << std::visit([](const auto& op) { return op.kName + Settings(op); }, of.op);
  for (const int p : of.parameters) {
    text << " ";
    const std::vector<int64_t>& shape = graph.parameters()[p].shape;
    for (size_t i = 0; i < shape.size(); ++i) text << (i == 0 ? "" : "x") << shape[i];
  }
  for (const int input : of.inputs) {
    text << (input == of.inputs.front() ? " : " : ", ");
    AppendShape(graph[input].shape, &text);
  }
  text << " : ";
  AppendShape(of.shape, &text);
  return text.str();
}

WorkTimes::WorkTimes(const Machine* machine, double multiply_adds_per_s, const Graph* graph,
                     Precision precision)
    : machine_(machine),
      multiply_adds_per_s_(multiply_adds_per_s),
      value_bytes_(machine->gpus() && precision == Precision::kBFloat16 ? kElement / 2 : kElement),
      buckets_(static_cast<int>(graph->parameters().buckets().size())) {
  std::unordered_map<std::string, const Kernel*> kernels;
  for (const Kernel& kernel : machine->kernel()) kernels[kernel.op()] = &kernel;
  for (int i = 0; i < graph->size(); ++i) {
    const Node& node = (*graph)[i];
    NodeTimes times;
    if (const auto found = kernels.find(KernelName(*graph, i)); found != kernels.end()) {
      times.kernel = found->second;
    }
    times.multiply_adds =
        static_cast<double>(std::visit([](const auto& op) { return op.multiply_adds(); }, node.op));
    times.numbers = static_cast<double>(node.shape.features());
    for (const int input : node.inputs) {
      times.numbers += static_cast<double>((*graph)[input].shape.features());
    }
    for (const int p : node.parameters) {
      const ParameterInfo& info = graph->parameters()[p];
      times.parameters += static_cast<double>(info.size);
      times.buckets.push_back(info.bucket);
    }
    nodes_.push_back(std::move(times));
  }
}

PassTimes WorkTimes::Pass(int64_t rows, int64_t leaves) const {
  PassTimes pass;
  pass.bucket_ready.assign(buckets_, 0);
  const auto count = static_cast<double>(rows);
  for (size_t i = nodes_.size(); i-- > 0;) {
    const NodeTimes& node = nodes_[i];
    if (node.kernel != nullptr) {
      pass.forward += Interpolate(node.kernel->rows(), node.kernel->forward_s(), count);
      pass.backward += Interpolate(node.kernel->rows(), node.kernel->backward_s(), count) +
                       node.kernel->leaf_s() * static_cast<double>(leaves - 1);
    } else {
      const double once =
          std::max(node.multiply_adds * count / multiply_adds_per_s_,
                   (node.numbers * count + node.parameters) * value_bytes_ / memory());
      pass.forward += machine_->kernel_s() + once;
      // The gradients of inputs and of parameters.
      pass.backward += 2 * (machine_->kernel_s() + once);
    }
    for (const int b : node.buckets) pass.bucket_ready[b] = pass.backward;
  }
  // The last bucket comes first.
  double ready = 0;
  for (int b = buckets_ - 1; b >= 0; --b) {
    ready = std::max(ready, pass.bucket_ready[b]);
    pass.bucket_ready[b] = ready;
  }
  return pass;
}

double WorkTimes::compute_scale(int64_t passes) const {
  const auto scale = [](double found, double otherwise) { return found > 0 ? found : otherwise; };
  const double many = scale(machine_->compute_scale(), 1);
  const double one = scale(machine_->one_pass_compute_scale(), many);
  constexpr double kMany = 16;
  const double share = std::log2(std::clamp(static_cast<double>(passes), 1.0, kMany)) / 4;
  static_assert(kMany == 1 << 4);
  return one + share * (many - one);
}

double WorkTimes::measured_share() const {
  double all = 0, measured = 0;
  for (const NodeTimes& node : nodes_) {
    all += node.multiply_adds;
    if (node.kernel != nullptr) measured += node.multiply_adds;
  }
  return all == 0 ? 0 : measured / all;
}

double WorkTimes::memory() const { return machine_->memory_bytes_per_s(); }

double WorkTimes::gather() const {
  return machine_->gather_bytes_per_s() > 0 ? machine_->gather_bytes_per_s() : memory();
}

double WorkTimes::Derived(const Piece& piece, bool has, double amount, double bytes_each,
                          double bytes_per_s) const {
  if (amount == 0) return 0;
  if (has) return piece.fixed_s() + piece.each_s() * amount;
  return machine_->kernel_s() + bytes_each * amount / bytes_per_s;
}

// Bytes that are moved for each unit of an amount if nothing was measured: keys of 8 bytes and
// numbers of 4, each read and written where the step does so.
#define ELASTOR_PIECE(Name, field, bytes_each, bytes_per_s)                              \
  double WorkTimes::Name(double amount) const {                                          \
    return Derived(machine_->pieces().field(), machine_->pieces().has_##field(), amount, \
                   bytes_each, bytes_per_s);                                             \
  }
ELASTOR_PIECE(UniqueIds, unique_ids, 64, memory())
ELASTOR_PIECE(OwnedKeys, owned_keys, 64, memory())
ELASTOR_PIECE(FindRows, find_rows, 64, gather())
ELASTOR_PIECE(CopyRows, copy_rows, 2 * kElement, gather())
ELASTOR_PIECE(PoolBags, pool_bags, 4 * kElement, gather())
ELASTOR_PIECE(Loss, loss, 64, memory())
ELASTOR_PIECE(SumGradients, sum_gradients, 2 * kElement, gather())
ELASTOR_PIECE(Fold, fold, kElement, memory())
ELASTOR_PIECE(NormRows, norm_rows, kElement, memory())
ELASTOR_PIECE(UpdateRows, update_rows, 7 * kElement, gather())
ELASTOR_PIECE(NormDense, norm_dense, 3 * kElement, memory())
ELASTOR_PIECE(UpdateDense, update_dense, 7 * kElement, memory())
ELASTOR_PIECE(Repack, repack, 2 * kElement, memory())
ELASTOR_PIECE(Copy, copy, 2, memory())
#undef ELASTOR_PIECE

}  // namespace elastor
