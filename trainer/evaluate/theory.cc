#include "trainer/evaluate/theory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <span>
#include <utility>

#include "core/base/exact_sum.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "core/theory/feed_forward.h"
#include "core/theory/matrix.h"
#include "core/theory/token_mixing.h"

namespace elastor {
namespace {

// The findings on one claim. Sums are exact, hence the same however samples are spread.
class ClaimSums {
 public:
  void Add(const Claim& claim, const Finding& finding) {
    ++samples_;
    holds_ += Holds(claim, finding);
    const double values[] = {finding.assumption, finding.bound, finding.measured,
                             finding.measured / finding.bound};
    for (size_t i = 0; i < sums_.size(); ++i) sums_[i].Add(values[i]);
  }
  TheoryRow Row(const std::string& representation, const std::string& stage,
                const Claim& claim) const {
    const auto mean = [&](size_t i) { return sums_[i].Value() / static_cast<double>(samples_); };
    return {.representation = representation,
            .stage = stage,
            .claim = claim,
            .samples = samples_,
            .holds = holds_,
            .assumption = mean(0),
            .bound = mean(1),
            .measured = mean(2),
            .ratio = mean(3)};
  }

  // For an integer all-reduce (ExactSum::ToWords): this object's words are added to `words`.
  static constexpr size_t kWords = 2 + 4 * ExactSum::kWords;
  void AddTo(std::span<int64_t, kWords> words) const {
    words[0] += samples_;
    words[1] += holds_;
    for (size_t i = 0; i < sums_.size(); ++i) {
      const auto own = sums_[i].ToWords();
      for (size_t w = 0; w < own.size(); ++w) words[2 + i * own.size() + w] += own[w];
    }
  }
  static ClaimSums FromWords(std::span<const int64_t, kWords> words) {
    ClaimSums sums;
    sums.samples_ = words[0];
    sums.holds_ = words[1];
    for (size_t i = 0; i < sums.sums_.size(); ++i) {
      std::array<int64_t, ExactSum::kWords> own;
      std::copy_n(words.begin() + 2 + i * own.size(), own.size(), own.begin());
      sums.sums_[i] = ExactSum::FromWords(own);
    }
    return sums;
  }

 private:
  int64_t samples_ = 0;
  int64_t holds_ = 0;
  std::array<ExactSum, 4> sums_;  // assumption, bound, measured, measured / bound
};

// Claims on one kind of X, and what a row of the split, number `sample`, says about them.
struct Section {
  std::string representation;
  std::string stage;
  std::vector<Claim> claims;
  using ProbeOfRow = std::function<Matrix(int probe)>;
  std::function<std::vector<Finding>(int64_t sample, const ProbeOfRow& probe)> find;
};

const TokenModelConfig& TokenConfig(const ModelConfig& config) {
  return config.has_rank_mixer() ? config.rank_mixer() : config.rank_elastor();
}

int64_t HiddenWidth(const TokenModelConfig& config) {
  return config.feed_forward().expansion() * config.token_width();
}

int FindProbe(const Graph& graph, const std::string& name) {
  const auto probes = graph.probes();
  const auto found = std::ranges::find(probes, name, &Probe::name);
  CHECK(found != probes.end()) << name;
  return static_cast<int>(found - probes.begin());
}

Matrix RowOf(const Panels<const float>& x, int64_t row, Shape shape) {
  Matrix matrix(shape.tokens, shape.width);
  for (int64_t f = 0; f < x.features; ++f) matrix.values[f] = x.At(row, f);
  return matrix;
}

FeedForwardWeights DrawOf(const TheoryModel& model, const std::string& stage, int64_t sample) {
  const TokenModelConfig& config = TokenConfig(*model.config);
  return DrawFeedForward(config.token_width(), HiddenWidth(config),
                         MakeRandomKey(model.seed, RandomPurpose::kTheory, HashName(stage)),
                         static_cast<uint64_t>(sample));
}

// The rank before and after a part of the model, which is its own evidence.
Finding RankChange(const Matrix& before, const Matrix& after) {
  return {RanksOf(before).stable, RanksOf(after).stable};
}

Section MixingSection(const std::string& representation, const std::string& stage, int before,
                      int after, Shape shape) {
  Section section = {representation, stage, MixingClaims(shape.tokens, shape.width), {}};
  section.claims.push_back(
      {"mixing of the model", "erank(mixing(X)) > erank(X)", "", Relation::kAbove});
  section.find = [=](int64_t, const Section::ProbeOfRow& probe) {
    const Matrix x = probe(before);
    std::vector<Finding> findings = MixingFindings(x);
    findings.push_back(RankChange(x, probe(after)));
    return findings;
  };
  return section;
}

Section FeedForwardSection(const std::string& representation, const std::string& stage, int before,
                           int after, const TheoryModel& model) {
  Section section = {representation, stage, FeedForwardClaims(), {}};
  const bool gated =
      TokenConfig(*model.config).feed_forward().kind() != FeedForwardConfig::TWO_LAYER;
  section.claims.push_back(
      gated ? Claim{"P-FFN of the model", "erank(G(X)) > erank(X)", "", Relation::kAbove}
            : Claim{"P-FFN of the model", "erank(F(X)) < erank(X)", "", Relation::kBelow});
  section.find = [=](int64_t sample, const Section::ProbeOfRow& probe) {
    const Matrix x = probe(before);
    std::vector<Finding> findings = FeedForwardFindings(x, DrawOf(model, stage, sample));
    findings.push_back(RankChange(x, probe(after)));
    return findings;
  };
  return section;
}

std::vector<Section> ModelSections(const std::string& representation, const TheoryModel& model) {
  std::vector<Section> sections;
  int before = FindProbe(*model.graph, "tokens");
  for (int64_t i = 0; i < TokenConfig(*model.config).blocks(); ++i) {
    const std::string mixing = IndexedName("block", i, ".mixing");
    const std::string feed_forward = IndexedName("block", i, ".ffn");
    const int mixed = FindProbe(*model.graph, mixing);
    const int after = FindProbe(*model.graph, feed_forward);
    sections.push_back(
        MixingSection(representation, mixing, before, mixed, model.graph->probes()[before].shape));
    sections.push_back(FeedForwardSection(representation, feed_forward, mixed, after, model));
    before = after;
  }
  return sections;
}

// Random X of that rank; 0: Gaussian.
Section RandomSection(const std::string& representation, int64_t rank, const TheoryModel& model) {
  const TokenModelConfig& config = TokenConfig(*model.config);
  const int64_t tokens = config.tokens(), width = config.token_width();
  Section section = {representation, "", MixingClaims(tokens, width), {}};
  for (Claim& claim : FeedForwardClaims()) section.claims.push_back(std::move(claim));
  const uint64_t key = MakeRandomKey(model.seed, RandomPurpose::kTheory, HashName(representation));
  section.find = [=](int64_t sample, const Section::ProbeOfRow&) {
    const auto stream = static_cast<uint64_t>(2 * sample);
    const Matrix x = rank == 0 ? NormalMatrix(tokens, width, 1, key, stream)
                               : Product(NormalMatrix(tokens, rank, 1, key, stream),
                                         NormalMatrix(rank, width, 1, key, stream + 1));
    std::vector<Finding> findings = MixingFindings(x);
    for (const Finding& finding : FeedForwardFindings(x, DrawOf(model, representation, sample))) {
      findings.push_back(finding);
    }
    return findings;
  };
  return section;
}

StatusOr<std::vector<TheoryRow>> MeasureSections(const std::vector<Section>& sections,
                                                 const Graph& graph, Split split, int64_t samples,
                                                 Evaluation* evaluation,
                                                 Communicator* communicator) {
  size_t claims = 0;
  for (const Section& section : sections) claims += section.claims.size();
  std::vector<int64_t> words(claims * ClaimSums::kWords);  // by all threads
  const auto of_claim = [&](size_t c) {
    return std::span(words).subspan(c * ClaimSums::kWords).first<ClaimSums::kWords>();
  };
  std::mutex mutex;
  const auto visit = [&](int64_t first_row, const EvaluatedRows<float>& pass) {
    std::vector<ClaimSums> sums(claims);
    for (int64_t row = 0; row < pass.rows; ++row) {
      const auto probe = [&](int p) { return RowOf(pass.probe(p), row, graph.probes()[p].shape); };
      auto sum = sums.begin();
      for (const Section& section : sections) {
        const std::vector<Finding> findings = section.find(first_row + row, probe);
        CHECK_EQ(findings.size(), section.claims.size());
        for (size_t c = 0; c < findings.size(); ++c) (sum++)->Add(section.claims[c], findings[c]);
      }
    }
    const std::lock_guard lock(mutex);
    for (size_t c = 0; c < claims; ++c) sums[c].AddTo(of_claim(c));
  };
  ELASTOR_RETURN_IF_ERROR(evaluation->VisitRows(split, samples, visit));
  ELASTOR_RETURN_IF_ERROR(communicator->AllReduceSum(Phase::kMetrics, words));
  std::vector<TheoryRow> rows;
  for (const Section& section : sections) {
    for (const Claim& claim : section.claims) {
      const ClaimSums sums = ClaimSums::FromWords(of_claim(rows.size()));
      rows.push_back(sums.Row(section.representation, section.stage, claim));
    }
  }
  return rows;
}

// A claim about the weights themselves.
TheoryRow RowOfOne(const std::string& representation, const std::string& stage, const Claim& claim,
                   const Finding& finding) {
  ClaimSums sums;
  sums.Add(claim, finding);
  return sums.Row(representation, stage, claim);
}

// How far the learned W of full mixing is from every map that block mixing can be.
void AddLinearMaps(const std::string& representation, const TheoryModel& model,
                   std::vector<TheoryRow>* rows) {
  const TokenModelConfig& config = TokenConfig(*model.config);
  if (model.config->has_rank_mixer() || config.mixing().block_width() != 1) return;
  for (int64_t i = 0; i < config.blocks(); ++i) {
    const std::string stage = IndexedName("block", i, ".mixing");
    const ParameterLayout& layout = model.graph->parameters();
    const ParameterInfo& info = layout[layout.Find(stage + ".weight")];
    Matrix w(info.shape[0], info.shape[1]);
    std::copy_n(model.weights + info.offset, info.size, w.values.begin());
    for (const int64_t d : BlockWidthsInDoubt(config.tokens(), config.token_width())) {
      rows->push_back(RowOfOne(representation, stage,
                               {StrCat("3.1 linear maps d*=", d),
                                "|W - W' (x) I|_F / |W|_F > 0 for every W'", "", Relation::kAbove},
                               {0, DistanceToBlockMixing(w, d)}));
    }
  }
}

// Elements of the weight matrices, biases and norms apart, whose names begin so.
int64_t CountWeights(const Graph& graph, const std::string& prefix) {
  int64_t weights = 0;
  for (const ParameterInfo& info : graph.parameters().parameters()) {
    if (info.decay == Decay::kDense && info.name.starts_with(prefix)) weights += info.size;
  }
  return weights;
}

std::string Quoted(const std::string& text) { return '"' + text + '"'; }

std::string NumberText(const char* format, double value) {
  char text[32] = "";
  if (std::isfinite(value)) std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string AssumptionValue(const char* format, const TheoryRow& row) {
  return row.claim.assumption.empty() ? "" : NumberText(format, row.assumption);
}

// One line of the table for people.
std::string TextLine(const std::array<std::string, 8>& columns, const std::string& statement) {
  constexpr int kWidths[] = {-10, -13, -24, 6, 10, 10, 10, 7};  // negative: to the left
  std::string line;
  for (size_t c = 0; c < columns.size(); ++c) {
    const size_t width = std::abs(kWidths[c]);
    const std::string blanks(width - std::min(width, columns[c].size()), ' ');
    line += (kWidths[c] < 0 ? columns[c] + blanks : blanks + columns[c]) + " ";
  }
  return line + " " + statement + "\n";
}

}  // namespace

StatusOr<std::vector<TheoryRow>> MeasureTheory(const std::string& representation,
                                               const TheoryModel& model, Split split,
                                               int64_t samples, Evaluation* evaluation,
                                               Communicator* communicator) {
  ELASTOR_ASSIGN_OR_RETURN(std::vector<TheoryRow> rows,
                           MeasureSections(ModelSections(representation, model), *model.graph,
                                           split, samples, evaluation, communicator));
  AddLinearMaps(representation, model, &rows);
  return rows;
}

StatusOr<std::vector<TheoryRow>> MeasureRandomTheory(const TheoryModel& model, Split split,
                                                     int64_t samples, Evaluation* evaluation,
                                                     Communicator* communicator) {
  return MeasureSections({RandomSection("gaussian", 0, model), RandomSection("rank 3", 3, model),
                          RandomSection("rank 1", 1, model)},
                         *model.graph, split, samples, evaluation, communicator);
}

std::vector<TheoryRow> CountParameters(const TheoryModel& model) {
  const TokenModelConfig& config = TokenConfig(*model.config);
  const auto tokens = static_cast<double>(config.tokens());
  const auto width = static_cast<double>(config.token_width());
  const auto expansion = static_cast<double>(config.feed_forward().expansion());
  const double mixed = tokens * width / static_cast<double>(config.mixing().block_width());
  const double mixing = model.config->has_rank_mixer() ? 0 : mixed * mixed;
  double matrices = 2 * expansion;  // of D x D, of a token
  std::string formula = "2 r D^2";
  if (config.feed_forward().kind() == FeedForwardConfig::GATED) {
    matrices = 3 * expansion + 1;
    formula = "(3 r + 1) D^2";
  } else if (config.feed_forward().kind() == FeedForwardConfig::GATED_SUM) {
    matrices = 4 * expansion + 1;
    formula = "(4 r + 1) D^2";
  }
  const double feed_forward = matrices * width * width;
  std::vector<TheoryRow> rows;
  for (int64_t i = 0; i < config.blocks(); ++i) {
    const auto add = [&](const std::string& stage, const std::string& name,
                         const std::string& statement, double bound) {
      rows.push_back(
          RowOfOne("parameters", stage, {name, statement, "", Relation::kEqual},
                   {bound, static_cast<double>(CountWeights(*model.graph, stage + "."))}));
    };
    const std::string stage = IndexedName("block", i);
    add(stage + ".mixing", "3.3 mixing", "its weights: (T D / d*)^2, RankMixer's 0", mixing);
    add(stage + ".ffn", "3.3 P-FFN", "its weights: " + formula, feed_forward);
    add(stage + ".ffn", "3.3 P-FFN instead", "its weights: T " + formula, tokens * feed_forward);
  }
  return rows;
}

std::string TheoryCsv(const std::vector<TheoryRow>& rows) {
  std::string text =
      "representation,stage,claim,samples,holds,assumption,bound,measured,measured_per_bound,"
      "statement,assumes\n";
  for (const TheoryRow& row : rows) {
    text += row.representation + "," + row.stage + "," + row.claim.name + ",";
    StrAppend(&text, row.samples, ",", row.holds, ",");
    text += AssumptionValue("%.9g", row) + "," + NumberText("%.9g", row.bound) + ",";
    text += NumberText("%.9g", row.measured) + "," + NumberText("%.9g", row.ratio) + ",";
    text += Quoted(row.claim.statement) + "," + Quoted(row.claim.assumption) + "\n";
  }
  return text;
}

std::string TheoryText(const std::vector<TheoryRow>& rows) {
  std::string text =
      TextLine({"X", "stage", "claim", "holds", "assumption", "bound", "measured", "ratio"},
               "statement (assumption)");
  for (const TheoryRow& row : rows) {
    const double share = 100 * static_cast<double>(row.holds) / static_cast<double>(row.samples);
    const std::string& assumption = row.claim.assumption;
    text += TextLine({row.representation, row.stage, row.claim.name, NumberText("%.1f%%", share),
                      AssumptionValue("%.4g", row), NumberText("%.5g", row.bound),
                      NumberText("%.5g", row.measured), NumberText("%.3f", row.ratio)},
                     row.claim.statement + (assumption.empty() ? "" : " (" + assumption + ")"));
  }
  return text;
}

}  // namespace elastor
