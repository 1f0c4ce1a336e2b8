#include <cmath>

#include "core/report/csv.h"
#include "launcher/sweep_report/answer.h"
#include "launcher/sweep_report/page.h"

namespace elastor {
namespace {

constexpr size_t kSizes = 3;  // columns of sizes

class Csv {
 public:
  explicit Csv(const char* names) : text_(std::string(names) + "\n") {}
  Csv& Add(const std::string& value) {
    text_ += (begun_ ? "," : "") + CsvText(value);
    begun_ = true;
    return *this;
  }
  Csv& Add(double value) { return Add(CsvNumber(value)); }
  Csv& Add(const Interval& interval) { return Add(interval.low).Add(interval.high); }
  Csv& Skip(size_t count) {
    for (size_t i = 0; i < count; ++i) Add("");
    return *this;
  }
  void End() {
    text_ += "\n";
    begun_ = false;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool begun_ = false;
};

std::string SizesText(const SweepLaw& law) {
  std::string text;
  for (const std::string& size : law.sizes) text += (text.empty() ? "" : "+") + size;
  return text;
}

std::string FitsCsv(const SweepReport& report) {
  Csv csv(
      "loss,sizes,model,runs,configurations,seed_spread,E,E_low,E_high,A_1,alpha_1,alpha_1_low,"
      "alpha_1_high,A_2,alpha_2,alpha_2_low,alpha_2_high,A_3,alpha_3,alpha_3_low,alpha_3_high,"
      "huber_delta,E_tenth_of_delta,alpha_1_tenth_of_delta,E_ten_times_delta,"
      "alpha_1_ten_times_delta,starts,optima,condition,identified,reasons,hold_out_error,"
      "hold_out_last_value_error,hold_out_log_linear_error,hold_out_breaks_law");
  for (const SweepLaw& law : report.laws) {
    for (const SeriesLaw& series : law.series) {
      size_t runs = 0;
      for (const Configuration& each : series.configurations) runs += each.values.size();
      csv.Add(law.metric == Metric::kAuc ? "1 - auc" : MetricName(law.metric))
          .Add(SizesText(law))
          .Add(series.series)
          .Add(static_cast<double>(runs))
          .Add(static_cast<double>(series.configurations.size()));
      if (!series.analysis) {
        csv.Skip(24).Add("no").Add(series.why_not).Skip(4).End();
        continue;
      }
      const Analysis& analysis = *series.analysis;
      csv.Add(analysis.seed_spread.value_or(NAN))
          .Add(analysis.fit.law.limit)
          .Add(LimitInterval(analysis));
      for (size_t k = 0; k < kSizes; ++k) {
        if (k >= law.sizes.size()) {
          csv.Skip(4);
          continue;
        }
        csv.Add(PlainCoefficient(analysis.fit.law, k))
            .Add(analysis.fit.law.exponents[k])
            .Add(ExponentInterval(analysis, k));
      }
      csv.Add(analysis.delta);
      for (const Law* other : {&analysis.tenth_of_delta, &analysis.ten_times_delta}) {
        csv.Add(other->limit).Add(other->exponents[0]);
      }
      std::string reasons;
      for (const std::string& reason : analysis.identification.reasons) {
        reasons += (reasons.empty() ? "" : "; ") + reason;
      }
      csv.Add(analysis.fit.starts)
          .Add(analysis.fit.optima)
          .Add(analysis.identification.condition)
          .Add(analysis.identification.identified() ? "yes" : "no")
          .Add(reasons);
      if (analysis.hold_out) {
        const HoldOut& hold_out = *analysis.hold_out;
        csv.Add(hold_out.RootMeanSquare(&HeldOut::error))
            .Add(hold_out.RootMeanSquare(&HeldOut::last_value_error))
            .Add(hold_out.RootMeanSquare(&HeldOut::log_linear_error))
            .Add(hold_out.breaks_law() ? "yes" : "no");
      } else {
        csv.Skip(4);
      }
      csv.End();
    }
  }
  return csv.text();
}

std::string PointsCsv(const SweepReport& report) {
  Csv csv(
      "metric,sizes,model,size_1,size_2,size_3,seeds,mean,mean_low,mean_high,fitted,fitted_low,"
      "fitted_high,residual,hold_out_predicted,hold_out_low,hold_out_high,values");
  for (const SweepLaw& law : report.laws) {
    const auto shown = [&law](const Interval& interval) {
      const double a = Shown(law.metric, interval.low), b = Shown(law.metric, interval.high);
      return Interval{std::min(a, b), std::max(a, b)};
    };
    for (const SeriesLaw& series : law.series) {
      const auto begin = [&](const std::vector<double>& sizes) {
        csv.Add(MetricName(law.metric)).Add(SizesText(law)).Add(series.series);
        for (size_t k = 0; k < kSizes; ++k) csv.Add(k < sizes.size() ? sizes[k] : NAN);
      };
      for (size_t c = 0; c < series.configurations.size(); ++c) {
        const Configuration& configuration = series.configurations[c];
        begin(configuration.sizes);
        const ChartPoint mean = MeanPoint(series, configuration, law.metric);
        csv.Add(static_cast<double>(configuration.values.size()))
            .Add(mean.y)
            .Add(Interval{mean.low, mean.high});
        if (series.analysis) {
          const LawPrediction& prediction = series.analysis->predictions[c];
          const double fitted = Shown(law.metric, prediction.value);
          csv.Add(fitted).Add(shown(prediction.interval)).Add(mean.y - fitted);
        } else {
          csv.Skip(4);
        }
        if (const HeldOut* held = HeldOutOf(series, configuration)) {
          csv.Add(Shown(law.metric, held->predicted)).Add(shown(held->interval));
        } else {
          csv.Skip(3);
        }
        std::string values;
        for (const double value : configuration.values) {
          values += (values.empty() ? "" : " ") + CsvNumber(Shown(law.metric, value));
        }
        csv.Add(values).End();
      }
      if (!series.analysis) continue;
      const std::vector<LawPrediction>& predictions = series.analysis->predictions;
      for (size_t i = series.configurations.size(); i < predictions.size(); ++i) {
        begin(predictions[i].sizes);
        csv.Skip(4)
            .Add(Shown(law.metric, predictions[i].value))
            .Add(shown(predictions[i].interval))
            .Skip(5)
            .End();
      }
    }
  }
  return csv.text();
}

std::string SpectraCsv(const SweepData& data) {
  Csv csv("run,model,seed,step,stage,stable_rank,entropy_rank,max_rank");
  for (const SweepRun& run : data.runs) {
    for (const bool last : {false, true}) {
      if (!last && run.first_step == run.last_step) continue;
      for (const StageRank& rank : last ? run.last_ranks : run.first_ranks) {
        csv.Add(run.plan.folder)
            .Add(run.series)
            .Add(static_cast<double>(run.seed))
            .Add(static_cast<double>(last ? run.last_step : run.first_step))
            .Add(rank.stage)
            .Add(rank.stable)
            .Add(rank.entropy)
            .Add(rank.most)
            .End();
      }
    }
  }
  return csv.text();
}

std::string GapsCsv(const SweepData& data) {
  Csv csv(
      "first,second,first_runs,second_runs,energy_distance,p,labellings_are,labellings,"
      "gap_difference,gap_low,gap_high,equivalence_bound,last_gap_difference,last_gap_low,"
      "last_gap_high,equal_loss,equal_loss_gap_difference,equal_loss_gap_low,equal_loss_gap_high,"
      "why_not");
  for (const TestedGap& gap : data.gaps) {
    for (const TestedGap::Arm& arm : gap.arms) csv.Add(arm.name);
    for (const TestedGap::Arm& arm : gap.arms) csv.Add(static_cast<double>(arm.runs.size()));
    if (gap.why_not.empty()) {
      csv.Add(gap.test.distance)
          .Add(gap.test.p)
          .Add(gap.test.exact ? "all" : "drawn")
          .Add(static_cast<double>(gap.test.labellings))
          .Add(gap.test.mean.value)
          .Add(gap.test.mean.interval)
          .Add(gap.test.mean.equivalence_bound())
          .Add(gap.test.last.value)
          .Add(gap.test.last.interval);
      if (const auto& equal = gap.test.equal_loss) {
        csv.Add(equal->loss).Add(equal->gap.value).Add(equal->gap.interval);
      } else {
        csv.Skip(4);
      }
    } else {
      csv.Skip(15);
    }
    csv.Add(gap.why_not).End();
  }
  return csv.text();
}

std::string KernelsCsv(const SweepData& data) {
  Csv csv("run,model,seed,step,layer,rows,parameters,lambda_max,lambda_min,condition_number,rank");
  for (const SweepRun& run : data.runs) {
    for (const auto& [step, kernels] : run.kernels) {
      for (const LayerKernel& kernel : kernels) {
        csv.Add(run.plan.folder)
            .Add(run.series)
            .Add(static_cast<double>(run.seed))
            .Add(static_cast<double>(step))
            .Add(kernel.layer)
            .Add(static_cast<double>(kernel.rows))
            .Add(static_cast<double>(kernel.parameters))
            .Add(kernel.lambda_max)
            .Add(kernel.lambda_min.value_or(NAN))
            .Add(kernel.condition_number.value_or(NAN))
            .Add(static_cast<double>(kernel.rank))
            .End();
      }
    }
  }
  return csv.text();
}

}  // namespace

std::vector<std::pair<std::string, std::string>> Tables(const SweepReport& report) {
  std::vector<std::pair<std::string, std::string>> tables = {
      {"settings.csv", SettingsCsv(report.arms)},
      {"differences.csv", DifferencesCsv(report.arms)},
      {"fits.csv", FitsCsv(report)},
      {"points.csv", PointsCsv(report)},
      {"spectra.csv", SpectraCsv(report.data)}};
  if (!report.data.trials.empty()) tables.emplace_back("trials.csv", TrialsCsv(report.data));
  if (!report.gaps.figures.empty()) tables.emplace_back("gaps.csv", GapsCsv(report.data));
  if (!report.kernels.figures.empty()) tables.emplace_back("kernels.csv", KernelsCsv(report.data));
  return tables;
}

}  // namespace elastor
