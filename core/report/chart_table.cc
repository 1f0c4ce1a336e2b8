#include "core/report/chart_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/report/csv.h"

namespace elastor {
namespace {

const std::vector<std::string> kPoint = {"x", "y", "low", "high"};

ChartTable::Row RowOf(std::vector<std::string> texts, const ChartPoint& point) {
  return {std::move(texts), {point.x, point.y, point.low, point.high}};
}

std::string ToCsv(const ChartTable& table) {
  std::vector<std::string> line = table.texts;
  line.insert(line.end(), table.numbers.begin(), table.numbers.end());
  std::string text = Join(line, ",") + "\n";
  for (const ChartTable::Row& row : table.rows) {
    line.clear();
    for (const std::string& cell : row.texts) line.push_back(CsvText(cell));
    for (const double number : row.numbers) line.push_back(CsvNumber(number));
    text += Join(line, ",") + "\n";
  }
  return text;
}

std::string ToJson(const ChartTable& table) {
  Json rows = Json::array();
  for (const ChartTable::Row& row : table.rows) {
    Json object = Json::object();
    for (size_t i = 0; i < row.texts.size(); ++i) object[table.texts[i]] = row.texts[i];
    for (size_t i = 0; i < row.numbers.size(); ++i) object[table.numbers[i]] = row.numbers[i];
    rows.push_back(std::move(object));
  }
  return rows.dump(1) + "\n";
}

}  // namespace

ChartTable TableOf(const LineChart& chart) {
  const bool named = !chart.x.categories.empty();
  ChartTable table = {{"series"}, kPoint, {}};
  if (named) table.texts.push_back("category");
  const bool raw = std::ranges::any_of(
      chart.series, [](const ChartSeries& series) { return !series.raw.empty(); });
  if (raw) table.texts.push_back("kind");
  const auto add = [&](const ChartSeries& series, const char* kind,
                       const std::vector<ChartPoint>& points) {
    for (const ChartPoint& point : points) {
      std::vector<std::string> texts = {series.name};
      if (named) texts.push_back(chart.x.categories[static_cast<size_t>(point.x)]);
      if (raw) texts.push_back(kind);
      table.rows.push_back(RowOf(std::move(texts), point));
    }
  };
  for (const ChartSeries& series : chart.series) {
    add(series, "line", series.points);
    add(series, "raw", series.raw);
  }
  return table;
}

ChartTable TableOf(const ScalingChart& chart) {
  ChartTable table = {{"series", "kind"}, kPoint, {}};
  for (const ScalingSeries& series : chart.series) {
    const auto add = [&](const char* kind, const ChartPoint& point) {
      if (std::isfinite(point.x)) table.rows.push_back(RowOf({series.name, kind}, point));
    };
    for (const ScalingPoint& point : series.points) {
      add("mean", point.mean);
      for (const double run : point.runs) add("run", {.x = point.mean.x, .y = run});
      if (std::isfinite(point.fitted)) add("fitted", {.x = point.mean.x, .y = point.fitted});
      add("held_out", point.held_out);
    }
    for (const ChartPoint& point : series.curve) add("law", point);
  }
  for (const ChartPoint& point : chart.front) table.rows.push_back(RowOf({"", "front"}, point));
  return table;
}

ChartTable TableOf(const DistributionChart& chart) {
  ChartTable table = {{"name"}, {"low", "high", "rows"}, {}};
  for (const Distribution& each : chart.distributions) {
    const double width = each.upper / static_cast<double>(each.histogram.size());
    for (size_t bin = 0; bin < each.histogram.size(); ++bin) {
      const double low = static_cast<double>(bin) * width;
      table.rows.push_back(
          {{each.name}, {low, low + width, static_cast<double>(each.histogram[bin])}});
    }
  }
  return table;
}

ChartTable TableOf(const ForestChart& chart) {
  ChartTable table = {{"name", "told_apart"}, {"value", "low", "high"}, {}};
  for (const ForestRow& row : chart.rows) {
    table.rows.push_back(
        {{row.name, row.told_apart ? "yes" : "no"}, {row.value, row.low, row.high}});
  }
  return table;
}

ChartTable TableOf(const GridChart& chart) {
  ChartTable table = {{"row", "column", "text", "note"}, {"value"}, {}};
  for (size_t i = 0; i < chart.cells.size(); ++i) {
    const GridCell& cell = chart.cells[i];
    table.rows.push_back({{chart.rows[i / chart.columns.size()],
                           chart.columns[i % chart.columns.size()], cell.text, cell.note},
                          {cell.value}});
  }
  return table;
}

std::optional<ExportFormat> ExportFormatOf(const std::string& extension) {
  for (const ExportFormat format : {ExportFormat::kCsv, ExportFormat::kJson}) {
    if (extension == ExtensionOf(format)) return format;
  }
  return std::nullopt;
}

const char* ExtensionOf(ExportFormat format) {
  return format == ExportFormat::kCsv ? "csv" : "json";
}

std::string ToText(const ChartTable& table, ExportFormat format) {
  return format == ExportFormat::kCsv ? ToCsv(table) : ToJson(table);
}

}  // namespace elastor
