#ifndef ELASTOR_CORE_REPORT_CHART_TABLE_H_
#define ELASTOR_CORE_REPORT_CHART_TABLE_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/report/chart.h"

namespace elastor {

// The data that a picture shows: a row for each point, interval, cell or bin, in full precision.
struct ChartTable {
  struct Row {
    std::vector<std::string> texts;
    std::vector<double> numbers;  // not finite: empty
  };
  std::vector<std::string> texts;    // columns of texts, which stand first
  std::vector<std::string> numbers;  // columns of numbers
  std::vector<Row> rows;
};
ChartTable TableOf(const LineChart& chart);
ChartTable TableOf(const ScalingChart& chart);
ChartTable TableOf(const DistributionChart& chart);
ChartTable TableOf(const ForestChart& chart);
ChartTable TableOf(const GridChart& chart);

// How a picture's data are written into a file: its extension is the name.
enum class ExportFormat { kCsv, kJson };
// Returns the format of an extension, "csv" or "json"; none of another text.
std::optional<ExportFormat> ExportFormatOf(const std::string& extension);
const char* ExtensionOf(ExportFormat format);
std::string ToText(const ChartTable& table, ExportFormat format);

// Texts of files, by their names.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// Appends a picture, name.svg, and if it is exported its data: data_name.csv or data_name.json.
template <typename Chart>
void AddPicture(const std::string& name, const Chart& chart, std::optional<ExportFormat> exported,
                NamedTexts* files, const std::string& data_name) {
  files->emplace_back(name + ".svg", ToSvg(chart));
  if (!exported) return;
  files->emplace_back(data_name + "." + ExtensionOf(*exported), ToText(TableOf(chart), *exported));
}
template <typename Chart>
void AddPicture(const std::string& name, const Chart& chart, std::optional<ExportFormat> exported,
                NamedTexts* files) {
  AddPicture(name, chart, exported, files, name);
}

}  // namespace elastor

#endif  // ELASTOR_CORE_REPORT_CHART_TABLE_H_
