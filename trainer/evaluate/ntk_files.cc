#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/report/chart.h"
#include "core/report/chart_table.h"
#include "trainer/evaluate/ntk.h"
#include "trainer/records/record_json.h"

namespace elastor {
namespace {

constexpr int64_t kDensityBins = 256;
constexpr double kDensityDecades = 16;  // of double

std::string Exact(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value).ptr};
}

std::string Short(const std::optional<double>& value) {
  if (!value) return "unresolved";
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", *value);
  return text;
}

std::string Subtitle(const std::string& model, const NtkRecord& record) {
  return StrCat(model, " after ", record.step, " steps, ", record.rows, " rows of the ",
                record.split, " split");
}

LineChart SpectrumChart(const std::string& model, const std::vector<NtkRecord>& records) {
  LineChart chart;
  chart.title = "Spectrum of the neural tangent kernel";
  chart.subtitle = Subtitle(model, records[0]) + ". Each over its largest eigenvalue.";
  chart.x = {.title = "number of the eigenvalue", .logarithmic = true};
  chart.y = {.title = "eigenvalue / largest", .logarithmic = true};
  for (const NtkRecord& record : records) {
    ChartSeries& series = chart.series.emplace_back();
    series.name = record.layer;
    // Some sixty points, dense where the axis is.
    for (int64_t i = 1; i <= *record.rank; i = std::max(i + 1, i * 9 / 8)) {
      series.points.push_back(
          {.x = static_cast<double>(i), .y = record.eigenvalues[i - 1] / record.lambda_max});
    }
  }
  return chart;
}

DistributionChart DensityChart(const std::string& model, const std::vector<NtkRecord>& records) {
  DistributionChart chart;
  chart.title = "Spectral density of the neural tangent kernel";
  chart.subtitle = Subtitle(model, records[0]) + ". Eigenvalues that double tells from 0.";
  chart.x_title = "decades below the largest eigenvalue";
  for (const NtkRecord& record : records) {
    Distribution& distribution = chart.distributions.emplace_back();
    distribution.name = record.layer;
    distribution.upper = kDensityDecades;
    distribution.histogram.resize(kDensityBins);
    double sum = 0, shares = 0;
    const auto add = [&](double eigenvalue, double share) {
      const double decades = std::log10(record.lambda_max / eigenvalue);
      sum += share * decades;
      shares += share;
      const auto bin = static_cast<int64_t>(decades / kDensityDecades * kDensityBins);
      distribution.histogram[std::clamp<int64_t>(bin, 0, kDensityBins - 1)] +=
          std::llround(share * static_cast<double>(record.rows));
    };
    for (int64_t i = 0; i < record.rank.value_or(0); ++i) {
      add(record.eigenvalues[i], 1.0 / static_cast<double>(record.rows));
    }
    for (const auto& [eigenvalue, share, start] : record.density) {
      if (eigenvalue > 0) add(eigenvalue, share);
    }
    if (shares > 0) distribution.mean = sum / shares;
    if (record.rank) distribution.note = "condition number " + Short(record.condition_number);
  }
  return chart;
}

// By Lanczos' method.
std::string DensityCsv(const NtkRecord& record) {
  std::string text = "eigenvalue,share,start\n";
  for (const auto& [eigenvalue, share, start] : record.density) {
    StrAppend(&text, Exact(eigenvalue), ",", Exact(share), ",", start, "\n");
  }
  return text;
}

std::string SpectrumCsv(const std::vector<NtkRecord>& records) {
  std::string text = "layer,number,eigenvalue\n";
  for (const NtkRecord& record : records) {
    for (size_t i = 0; i < record.eigenvalues.size(); ++i) {
      StrAppend(&text, record.layer, ",", i + 1, ",", Exact(record.eigenvalues[i]), "\n");
    }
  }
  return text;
}

}  // namespace

Status WriteNtk(const std::string& directory, const std::string& model,
                const std::vector<NtkRecord>& records, std::optional<ExportFormat> exported) {
  std::string lines;
  for (const NtkRecord& record : records) lines += ToJson(record) + "\n";
  NamedTexts files = {{"ntk.jsonl", lines}};
  AddPicture("ntk_density", DensityChart(model, records), exported, &files, "ntk_density_drawn");
  if (records[0].rank) {
    files.emplace_back("ntk_spectrum.csv", SpectrumCsv(records));
    AddPicture("ntk_spectrum", SpectrumChart(model, records), exported, &files,
               "ntk_spectrum_drawn");
  } else {
    files.emplace_back("ntk_density.csv", DensityCsv(records[0]));
  }
  for (const auto& [name, text] : files) {
    ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(directory + "/" + name, text));
  }
  return OkStatus();
}

std::string NtkText(const NtkMeasurement& measurement) {
  char line[160];
  std::snprintf(line, sizeof(line), "%-24s %10s %11s %11s %11s %6s\n", "layer", "parameters",
                "lambda_max", "lambda_min", "condition", "rank");
  std::string text = line;
  for (const NtkRecord& record : measurement.records) {
    const bool lanczos = !record.rank;
    std::snprintf(line, sizeof(line), "%-24s %10lld %11.4g %11s %11s %6s\n", record.layer.c_str(),
                  static_cast<long long>(record.parameters), record.lambda_max,
                  lanczos ? "-" : Short(record.lambda_min).c_str(),
                  lanczos ? "-" : Short(record.condition_number).c_str(),
                  lanczos ? "-" : std::to_string(*record.rank).c_str());
    text += line;
    if (!lanczos) continue;
    text += Format("trace %.6g; by the density %.6g, standard error %.2g\n", *record.trace,
                   *record.trace_of_density, *record.trace_standard_error);
  }
  if (measurement.duplicates > 0) {
    StrAppend(&text, measurement.duplicates,
              " rows left out that have the features of an earlier one\n");
  }
  return text;
}

std::string NpyText(int64_t rows, std::span<const double> matrix) {
  const std::string side = std::to_string(rows);
  std::string header =
      "{'descr': '<f8', 'fortran_order': False, 'shape': (" + side + ", " + side + "), }";
  constexpr size_t kFixed = 10;  // magic, version, length
  header.append(63 - (kFixed + header.size()) % 64, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  text += header;
  text.append(reinterpret_cast<const char*>(matrix.data()), matrix.size_bytes());
  return text;
}

}  // namespace elastor
