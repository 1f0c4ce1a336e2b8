#include "trainer/evaluate/spectra_files.h"

#include <charconv>
#include <cstdio>

#include "core/base/file.h"
#include "core/base/student_t.h"
#include "core/base/text.h"
#include "core/report/chart.h"
#include "core/report/chart_table.h"
#include "core/report/csv.h"
#include "core/spectrum/spectrum_statistics.h"

namespace elastor {
namespace {

struct Quantile {
  const char* name;
  double share;
};
constexpr Quantile kQuantiles[] = {
    {"p05", 0.05}, {"p25", 0.25}, {"p50", 0.5}, {"p75", 0.75}, {"p95", 0.95}};

// One definition of the effective rank.
struct Kind {
  const char* name;
  RankRecord SpectrumRecord::*rank;
};
constexpr Kind kKinds[] = {{"stable", &SpectrumRecord::stable},
                           {"entropy", &SpectrumRecord::entropy}};

double ShareOf(int64_t part, const SpectrumRecord& record) {
  return static_cast<double>(part) / static_cast<double>(record.samples);
}

double QuantileOf(const RankRecord& rank, const SpectrumRecord& record, double share) {
  return HistogramQuantile(rank.histogram, static_cast<double>(record.max_rank), share);
}

std::string SpectraCsv(const std::vector<SpectrumRecord>& records) {
  std::string text = "step,split,stage,rows,max_rank";
  for (const auto& [name, member] : kKinds) {
    const std::string comma = "," + std::string(name);
    text += comma + "_mean" + comma + "_stddev" + comma + "_low" + comma + "_high";
    for (const Quantile& quantile : kQuantiles) text += comma + "_" + quantile.name;
    for (const char* column : {"change", "change_low", "change_high", "rising", "falling"}) {
      text += comma + "_" + column;
    }
  }
  text += ",profile\n";
  for (const SpectrumRecord& record : records) {
    StrAppend(&text, record.step, ",", record.split, ",", record.stage, ",", record.samples, ",",
              record.max_rank);
    const bool first = &record == &records.front();
    for (const auto& [name, member] : kKinds) {
      const RankRecord& rank = record.*member;
      const auto add = [&text](double value) { text += "," + CsvNumber(value); };
      const double half = MeanHalfWidth(rank.stddev, record.samples);
      for (const double value : {rank.mean, rank.stddev, rank.mean - half, rank.mean + half}) {
        add(value);
      }
      for (const Quantile& quantile : kQuantiles) add(QuantileOf(rank, record, quantile.share));
      if (first) {
        text += ",,,,,";
        continue;
      }
      const double change_half = MeanHalfWidth(rank.change_stddev, record.samples);
      add(rank.change_mean);
      add(rank.change_mean - change_half);
      add(rank.change_mean + change_half);
      add(ShareOf(rank.rising, record));
      add(ShareOf(rank.falling, record));
    }
    text += ",";
    for (size_t i = 0; i < record.profile.size(); ++i) {
      text += (i == 0 ? "" : " ") + CsvNumber(record.profile[i]);
    }
    text += "\n";
  }
  return text;
}

std::string HistogramCsv(const std::vector<SpectrumRecord>& records) {
  std::string text = "stage,kind,low,high,rows\n";
  for (const SpectrumRecord& record : records) {
    for (const auto& [name, member] : kKinds) {
      const std::vector<int64_t>& histogram = (record.*member).histogram;
      const double width =
          static_cast<double>(record.max_rank) / static_cast<double>(histogram.size());
      for (size_t b = 0; b < histogram.size(); ++b) {
        if (histogram[b] == 0) continue;
        StrAppend(&text, record.stage, ",", name, ",", CsvNumber(static_cast<double>(b) * width),
                  ",", CsvNumber(static_cast<double>(b + 1) * width), ",", histogram[b], "\n");
      }
    }
  }
  return text;
}

std::string Subtitle(const std::string& model, const SpectrumRecord& record) {
  return StrCat(model, " after ", record.step, " steps, ", record.samples, " rows of the ",
                record.split, " split");
}

std::string Percent(double share) {
  char text[16];
  return {text,
          std::to_chars(text, text + sizeof(text), 100 * share, std::chars_format::fixed, 0).ptr};
}

DistributionChart Distributions(const std::string& model,
                                const std::vector<SpectrumRecord>& records, const Kind& kind) {
  DistributionChart chart;
  chart.title = StrCat("Distribution of the ", kind.name, " rank, stage by stage");
  chart.subtitle =
      Subtitle(model, records[0]) + ". Each is scaled to its own peak; dashed, the stage before.";
  chart.x_title = std::string(kind.name) + " rank of a row";
  for (const SpectrumRecord& record : records) {
    const RankRecord& rank = record.*kind.rank;
    chart.distributions.push_back(
        {.name = record.stage,
         .histogram = rank.histogram,
         .upper = static_cast<double>(record.max_rank),
         .mean = rank.mean,
         .note = &record == &records.front()
                     ? ""
                     : Percent(ShareOf(rank.rising, record)) + " % of rows rise"});
  }
  return chart;
}

LineChart Means(const std::string& model, const std::vector<SpectrumRecord>& records) {
  LineChart chart;
  chart.title = "Effective rank, stage by stage";
  chart.subtitle = Subtitle(model, records[0]) + ". Means; bars hold 90 % of the rows.";
  chart.y.title = "effective rank";
  for (const SpectrumRecord& record : records) chart.x.categories.push_back(record.stage);
  for (const auto& [name, member] : kKinds) {
    ChartSeries& series = chart.series.emplace_back();
    series.name = std::string(name) + " rank";
    for (const SpectrumRecord& record : records) {
      const RankRecord& rank = record.*member;
      series.points.push_back({.x = static_cast<double>(series.points.size()),
                               .y = rank.mean,
                               .low = QuantileOf(rank, record, 0.05),
                               .high = QuantileOf(rank, record, 0.95)});
    }
  }
  return chart;
}

}  // namespace

Status WriteSpectra(const std::string& directory, const std::string& model,
                    const std::vector<SpectrumRecord>& records,
                    std::optional<ExportFormat> exported) {
  NamedTexts files = {{"spectra.csv", SpectraCsv(records)},
                      {"spectra_histogram.csv", HistogramCsv(records)}};
  for (const Kind& kind : kKinds) {
    AddPicture(StrCat("spectra_", kind.name), Distributions(model, records, kind), exported,
               &files);
  }
  AddPicture("spectra_means", Means(model, records), exported, &files);
  for (const auto& [name, text] : files) {
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(directory + "/" + name, text));
  }
  return OkStatus();
}

std::string SamplesHeader(std::span<const std::string> stages) {
  std::string text = "index";
  for (const std::string& stage : stages) text += "," + stage + ".stable," + stage + ".entropy";
  return text + "\n";
}

std::string SampleLines(int64_t first_row, int64_t stages, std::span<const EffectiveRank> ranks) {
  std::string text;
  char part[64];
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / stages;
    if (static_cast<int64_t>(i) % stages == 0) {
      StrAppend(&text, row == 0 ? "" : "\n", first_row + row);
    }
    text.append(part,
                std::snprintf(part, sizeof(part), ",%.9g,%.9g", ranks[i].stable, ranks[i].entropy));
  }
  return ranks.empty() ? text : text + "\n";
}

}  // namespace elastor
