#include "core/report/chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/report/chart_table.h"
#include "core/report/csv.h"
#include "core/report/html.h"

namespace elastor {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What is wrong with an XML text of elements, attributes in double quotes and the five entities;
// empty: nothing.
std::string XmlMistake(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; at < xml.size();) {
    if (static_cast<unsigned char>(xml[at]) < 0x20 && xml[at] != '\n') return "control character";
    if (xml[at] == '&') {
      const std::string entity = xml.substr(at, xml.find(';', at) - at + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;") {
        return "entity " + entity;
      }
    }
    if (xml[at] != '<') {
      ++at;
      continue;
    }
    const size_t end = xml.find('>', at);
    if (end == std::string::npos) return "open tag at the end";
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return "< in " + tag;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "quotes of " + tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag) return "close of " + tag;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end + 1;
    if (open.empty() && at < xml.size() && xml.substr(at) != "\n") return "text after the root";
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Well-formed, and no number that a viewer cannot read.
void ExpectGood(const std::string& svg) {
  EXPECT_EQ(XmlMistake(svg), "") << svg;
  for (const char* bad : {"=\"nan", "=\"inf", " nan", " inf", "-nan", "M\"", "e+"}) {
    EXPECT_EQ(svg.substr(svg.find("</style>")).find(bad), std::string::npos) << bad << "\n" << svg;
  }
  EXPECT_NE(svg.find("<title>"), std::string::npos);
  EXPECT_NE(svg.find("<desc>"), std::string::npos);
}

// The labels of ticks, in the order of the file.
std::vector<std::string> Labels(const std::string& svg) {
  std::vector<std::string> labels;
  const std::string mark = "class=\"label\"";
  for (size_t at = svg.find(mark); at != std::string::npos; at = svg.find(mark, at + 1)) {
    const size_t begin = svg.find('>', at) + 1;
    labels.push_back(svg.substr(begin, svg.find('<', begin) - begin));
  }
  return labels;
}

LineChart Line(const std::vector<double>& ys) {
  LineChart chart;
  chart.title = "title";
  chart.subtitle = "subtitle";
  chart.x = {.title = "", .categories = {"only"}};
  chart.series = {{"a", {}}};
  for (const double y : ys) chart.series[0].points.push_back({.x = 0, .y = y});
  return chart;
}
// Those of the vertical axis, from below, that hold these values.
std::vector<std::string> VerticalLabels(const std::vector<double>& ys, bool logarithmic = false) {
  LineChart chart = Line(ys);
  chart.y.logarithmic = logarithmic;
  const std::string svg = ToSvg(chart);
  ExpectGood(svg);
  std::vector<std::string> labels = Labels(svg);
  EXPECT_EQ(labels.back(), "only");
  labels.pop_back();
  return labels;
}

using Texts = std::vector<std::string>;

TEST(LineChartTest, TicksAreRoundNumbers) {
  EXPECT_EQ(VerticalLabels({1, 4}), (Texts{"1.0", "1.5", "2.0", "2.5", "3.0", "3.5", "4.0"}));
  EXPECT_EQ(VerticalLabels({-0.02, 0.03}),
            (Texts{"\u22120.02", "\u22120.01", "0.00", "0.01", "0.02", "0.03"}));
  EXPECT_EQ(VerticalLabels({0, 60000}),
            (Texts{"0", "10,000", "20,000", "30,000", "40,000", "50,000", "60,000"}));
  EXPECT_EQ(VerticalLabels({0, 3e9}),
            (Texts{"0", "5.0\u00b710\u2078", "1.0\u00b710\u2079", "1.5\u00b710\u2079",
                   "2.0\u00b710\u2079", "2.5\u00b710\u2079", "3.0\u00b710\u2079"}));
  EXPECT_EQ(VerticalLabels({5, 5}), (Texts{"4.6", "4.8", "5.0", "5.2", "5.4"}));
}

TEST(LineChartTest, LogarithmicTicks) {
  EXPECT_EQ(VerticalLabels({1, 100}, true), (Texts{"1", "2", "5", "10", "20", "50", "100"}));
  EXPECT_EQ(VerticalLabels({1e-3, 1e5}, true), (Texts{"0.01", "1", "100", "10,000"}));
  EXPECT_EQ(VerticalLabels({1e-9, 1e9}, true), (Texts{"10\u207b\u2075", "1", "100,000"}));
  // Less than a decade.
  EXPECT_EQ(VerticalLabels({2, 4}, true), (Texts{"2.0", "2.5", "3.0", "3.5", "4.0"}));
}

TEST(LineChartTest, ExtremeValues) {
  for (const std::vector<double>& ys : {std::vector<double>{-1e300, 1e300},
                                        {1e-300, 2e-300},
                                        {0, 1e-320},
                                        {1e15, 1e15 + 0.125},
                                        {1e300, 1e300},
                                        {-5e-324, 5e-324},
                                        {0, 0},
                                        {1e308, kInfinity, 1}}) {
    for (const bool logarithmic : {false, true}) {
      LineChart chart = Line(ys);
      chart.y.logarithmic = logarithmic;
      chart.x.categories.clear();
      for (size_t i = 0; i < ys.size(); ++i) chart.series[0].points[i].x = ys[ys.size() - 1 - i];
      ExpectGood(ToSvg(chart));
      EXPECT_LE(Labels(ToSvg(chart)).size(), 40u);
    }
  }
}

TEST(LineChartTest, LeavesOutWhatIsNoNumber) {
  LineChart chart = Line({1, 2, kNan, 3, 4});
  for (size_t i = 0; i < 5; ++i) chart.series[0].points[i].x = static_cast<double>(i);
  chart.x.categories = {"a", "b", "c", "d", "e"};
  chart.series[0].points[1].low = kNan;
  chart.series[0].points[3].low = 2.5;
  chart.series[0].points[3].high = 3.5;
  std::string svg = ToSvg(chart);
  ExpectGood(svg);
  // The legend's line, and the two parts; one whisker with its ends; the legend's marker and four.
  EXPECT_EQ(Count(svg, "class=\"c0 line\""), 3u);
  EXPECT_EQ(Count(svg, "class=\"c0 whisker\""), 3u);
  EXPECT_EQ(Count(svg, "class=\"c0 marker\""), 5u);

  chart.interval = LineChart::Interval::kBand;
  chart.series.push_back({"b", {{.x = 0, .y = kInfinity}}});
  chart.series.push_back({"c", {}});
  svg = ToSvg(chart);
  ExpectGood(svg);
  EXPECT_EQ(Count(svg, ">b (no data)<"), 1u);
  EXPECT_EQ(Count(svg, ">c (no data)<"), 1u);
  EXPECT_EQ(Count(svg, ">no data<"), 0u);
  chart.series.erase(chart.series.begin());
  svg = ToSvg(chart);
  ExpectGood(svg);
  EXPECT_EQ(Count(svg, ">no data<"), 1u);
  ExpectGood(ToSvg(LineChart()));
}

TEST(LineChartTest, SeveralSeriesSideBySide) {
  LineChart chart = Line({1});
  chart.series.push_back(chart.series[0]);
  for (ChartSeries& series : chart.series) {
    series.points[0].low = 0.5;
    series.points[0].high = 1.5;
  }
  const std::string svg = ToSvg(chart);
  ExpectGood(svg);
  // The same numbers, at different places.
  const auto whisker = [&svg](const std::string& color) {
    const size_t begin = svg.find("class=\"" + color + " whisker\"");
    return svg.substr(begin + 2 + std::string("class=c0 whisker\"").size(), 12);
  };
  EXPECT_NE(whisker("c0"), whisker("c1"));
}

TEST(LineChartTest, TextsAreEscapedAndDescribed) {
  LineChart chart = Line({1.5});
  chart.title = "a < b & \"c\" > d\x01";
  chart.series[0].name = "<script>";
  chart.series[0].points[0].low = 1.25;
  chart.series[0].points[0].high = 2;
  chart.x.categories = {"stage & <one>"};
  const std::string svg = ToSvg(chart);
  ExpectGood(svg);
  EXPECT_NE(svg.find("<title>a &lt; b &amp; &quot;c&quot; &gt; d </title>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;: stage &amp; &lt;one&gt; 1.50 (1.25 to 2.00)."),
            std::string::npos)
      << svg;
}

TEST(LineChartTest, ManySeriesAndLongNamesStayOnThePage) {
  LineChart chart = Line({1});
  chart.series.clear();
  for (int i = 0; i < 20; ++i) {
    chart.series.push_back(
        {"a rather long name of a model " + std::to_string(i), {{.y = 1.0 * i}}});
  }
  const std::string svg = ToSvg(chart);
  ExpectGood(svg);
  for (size_t at = svg.find(" x=\""); at != std::string::npos; at = svg.find(" x=\"", at + 1)) {
    const double x = std::stod(svg.substr(at + 4));
    EXPECT_GE(x, 0);
    EXPECT_LE(x, 760);
  }
}

DistributionChart Distributions() {
  DistributionChart chart;
  chart.title = "title";
  chart.x_title = "rank";
  for (const int peak : {40, 60, 50}) {
    Distribution& distribution = chart.distributions.emplace_back();
    distribution.name = "stage" + std::to_string(peak);
    distribution.histogram.resize(100);
    for (int b = -10; b <= 10; ++b) distribution.histogram[peak + b] = 100 - b * b;
    distribution.upper = 10;
    distribution.mean = peak / 10.0;
  }
  return chart;
}

TEST(LineChartTest, HalfAsWideAndWithoutMarkersWhereTheyWouldHideTheLine) {
  LineChart chart = Line({});
  chart.x.categories.clear();
  chart.half = true;
  for (int i = 0; i < 24; ++i) chart.series[0].points.push_back({.x = double(i), .y = double(i)});
  const std::string marked = ToSvg(chart);
  ExpectGood(marked);
  EXPECT_NE(marked.find("width=\"480\""), std::string::npos);
  EXPECT_EQ(Count(marked, "<circle"), 25u);  // and one in the legend
  chart.series[0].points.push_back({.x = 24, .y = 24});
  EXPECT_EQ(Count(ToSvg(chart), "<circle"), 0u);
}

TEST(DistributionChartTest, ShowsTheShiftFromStageToStage) {
  const std::string svg = ToSvg(Distributions());
  ExpectGood(svg);
  // The first has no change, the second rises, the third falls; two have one before.
  for (const char* area : {"c5 area", "c0 area", "c1 area"})
    EXPECT_EQ(Count(svg, area), 1u) << area;
  EXPECT_EQ(Count(svg, "class=\"ghost\""), 2u);
  EXPECT_EQ(Count(svg, ">+2.00<"), 1u);
  EXPECT_EQ(Count(svg, ">\u22121.00<"), 1u);
  EXPECT_EQ(Count(svg, "c0 marker"), 1u);  // arrows
  EXPECT_EQ(Count(svg, "c1 marker"), 1u);
  EXPECT_EQ(Labels(svg)[0], "3");
}

TEST(DistributionChartTest, WhatIsMissingIsTold) {
  DistributionChart chart = Distributions();
  chart.distributions[1].histogram.assign(100, 0);
  chart.distributions[1].mean = kNan;
  chart.distributions[2].histogram.assign(1, 1);
  const std::string svg = ToSvg(chart);
  ExpectGood(svg);
  EXPECT_EQ(Count(svg, ">no rows<"), 1u);
  EXPECT_EQ(Count(svg, "class=\"ghost\""), 1u);
  chart.distributions.resize(2);
  chart.distributions.erase(chart.distributions.begin());
  ExpectGood(ToSvg(chart));
  ExpectGood(ToSvg(DistributionChart()));
}

TEST(DistributionChartTest, EqualDataGiveEqualBytes) {
  EXPECT_EQ(ToSvg(Distributions()), ToSvg(Distributions()));
  DistributionChart other = Distributions();
  other.distributions[0].histogram[40] += 30;
  EXPECT_NE(ToSvg(Distributions()), ToSvg(other));
}

TEST(ScalingChartTest, PointsLawsAndResiduals) {
  ScalingChart chart = {.title = "t", .subtitle = "", .x = {}, .y = {}, .series = {}};
  chart.x = {.title = "size", .logarithmic = true, .prefixes = true};
  chart.y = {.title = "loss"};
  ScalingSeries& series = chart.series.emplace_back();
  series.name = "a";
  for (const double x : {1e4, 1e5, 1e6}) {
    ScalingPoint& point = series.points.emplace_back();
    point.mean = {.x = x, .y = 0.45, .low = 0.44, .high = 0.46};
    point.runs = {0.445, 0.455};
    point.fitted = 0.451;
    point.tip = "<tip>";
    // An interval without end says nothing of the range.
    series.curve.push_back({.x = x, .y = 0.451, .low = 0.1, .high = 90});
  }
  series.points.back().held_out = {.x = 1e6, .y = 0.452, .low = -90, .high = 90};
  series.fitted_until = 1e5;
  const std::string svg = ToSvg(chart);
  ExpectGood(svg);
  EXPECT_EQ(Count(svg, "<g><title>&lt;tip&gt;</title>"), 6u);  // points and residuals
  EXPECT_EQ(Count(svg, "class=\"c0 run\""), 6u);
  EXPECT_EQ(Count(svg, "class=\"c0 hollow\""), 2u);
  EXPECT_EQ(Count(svg, "class=\"c0 line beyond\""), 1u);
  const Texts labels = Labels(svg);
  EXPECT_EQ(labels[0], "0.43");  // half of the points' range below them
  EXPECT_NE(std::find(labels.begin(), labels.end(), "100k"), labels.end());
  series.points.clear();
  series.curve.clear();
  EXPECT_NE(ToSvg(chart).find("no data"), std::string::npos);
}

TEST(ScalingChartTest, NamesWhereThereIsRoom) {
  ScalingChart chart = {.title = "t",
                        .subtitle = {},
                        .x = {.title = "x"},
                        .y = {.title = "y"},
                        .series = {{.name = "s", .points = {}}}};
  const auto add = [&](double x, const std::string& label) {
    chart.series[0].points.push_back({.mean = {.x = x, .y = 1}, .label = label});
  };
  // At one place are a name above the point, one below, one beside it, and room for no more.
  for (const char* name : {"above", "below", "beside", "nowhere", "at all"}) add(1, name);
  add(9, "far");
  std::string svg = ToSvg(chart);
  ExpectGood(svg);
  for (const char* name : {">above<", ">below<", ">beside<", ">far<"}) {
    EXPECT_EQ(Count(svg, name), 1u) << name;
  }
  EXPECT_EQ(Count(svg, ">at all<"), 0u);
  // A name leaves the front's steps free, and stays on the plot.
  chart.series[0].points = {{.mean = {.x = 1, .y = 9}, .label = "cheap"},
                            {.mean = {.x = 5, .y = 1}, .label = "best"}};
  chart.front = {{1, 9}, {5, 1}};
  svg = ToSvg(chart);
  ExpectGood(svg);
  // The step comes down to the best, and goes right from it: its name stands at the left.
  const auto number = [&](size_t element, const std::string& attribute) {
    return std::stod(svg.substr(svg.find(" " + attribute + "=\"", element) + attribute.size() + 3));
  };
  const double name = number(svg.rfind("<text", svg.find(">best<")), "x");
  EXPECT_LT(name + 25, number(svg.rfind("<circle"), "cx"));
}

// A band of two seeds may be a hundred times as wide as what it is about.
TEST(LineChartTest, WideIntervalsLeaveTheLinesHalfOfTheHeight) {
  LineChart chart = Line({1, 2});
  chart.x.categories.clear();
  chart.series[0].points[1].x = 1;
  for (ChartPoint& point : chart.series[0].points) {
    point.low = -100;
    point.high = 100;
  }
  const std::string svg = ToSvg(chart);
  ExpectGood(svg);
  const Texts labels = Labels(svg);
  EXPECT_NE(std::find(labels.begin(), labels.end(), "2.5"), labels.end());
  EXPECT_EQ(std::find(labels.begin(), labels.end(), "3.0"), labels.end());
  EXPECT_EQ(Count(svg, ">\u22120.5<"), 0u);           // no value is negative
  EXPECT_EQ(Count(svg, "class=\"c0 whisker\""), 2u);  // without ends
}

TEST(ScalingChartTest, ABandOfTheWholeHeightIsNotDrawn) {
  ScalingChart chart = {.title = "t",
                        .subtitle = {},
                        .x = {.title = "x"},
                        .y = {.title = "y"},
                        .series = {{.name = "s", .points = {}}}};
  for (const double x : {1, 2, 3}) {
    chart.series[0].points.push_back({.mean = {.x = x, .y = x}});
    chart.series[0].curve.push_back({.x = x, .y = x, .low = -90, .high = 90});
  }
  EXPECT_EQ(Count(ToSvg(chart), "class=\"c0 area\""), 0u);
  chart.series[0].curve[1].low = 1.5;
  EXPECT_EQ(Count(ToSvg(chart), "class=\"c0 area\""), 1u);
}

TEST(LineChartTest, RawValuesStandBehindTheLine) {
  LineChart chart = {
      .title = "t",
      .subtitle = {},
      .x = {.title = "x"},
      .y = {.title = "y"},
      .series = {{.name = "s", .points = {{0, 1}, {1, 1}}, .raw = {{0, 0}, {1, 9}}}}};
  const std::string svg = ToSvg(chart);
  ExpectGood(svg);
  const size_t raw = svg.find("class=\"c0 raw\""), line = svg.rfind("class=\"c0 line\"");
  EXPECT_LT(raw, line);
  // The axis reaches to the raw values.
  EXPECT_EQ(Count(svg, ">8<"), 1u);
}

TEST(ChartTableTest, EveryPictureHasItsData) {
  const auto csv = [](const auto& chart) { return ToText(TableOf(chart), ExportFormat::kCsv); };
  LineChart line = {.title = "t",
                    .subtitle = {},
                    .x = {.title = "x"},
                    .y = {.title = "y"},
                    .series = {{.name = "a, b", .points = {{0, 0.1, 0, 0.2}, {1, kNan}}}}};
  EXPECT_EQ(csv(line), "series,x,y,low,high\n\"a, b\",0,0.1,0,0.2\n\"a, b\",1,,,\n");
  const std::string json = ToText(TableOf(line), ExportFormat::kJson);
  EXPECT_EQ(Count(json, "\"series\": \"a, b\""), 2u);
  EXPECT_EQ(Count(json, "\"high\": 0.2"), 1u);
  EXPECT_EQ(Count(json, "\"low\": null"), 1u);
  line.x.categories = {"first", "second"};
  line.series = {{.name = "s", .points = {{1, 2}}, .raw = {{0, 3}}}};
  EXPECT_EQ(csv(line),
            "series,category,kind,x,y,low,high\ns,second,line,1,2,,\ns,first,raw,0,3,,\n");
  const ScalingChart scaling = {.title = "t",
                                .subtitle = {},
                                .x = {.title = "x"},
                                .y = {.title = "y"},
                                .series = {{.name = "s",
                                            .points = {{.mean = {4, 2, 1, 3},
                                                        .runs = {1.5, 2.5},
                                                        .fitted = 2.25,
                                                        .held_out = {4, 7, 6, 8}}},
                                            .curve = {{5, 6, 5, 7}}}},
                                .front = {{4, 2}}};
  EXPECT_EQ(csv(scaling),
            "series,kind,x,y,low,high\ns,mean,4,2,1,3\ns,run,4,1.5,,\ns,run,4,2.5,,\n"
            "s,fitted,4,2.25,,\ns,held_out,4,7,6,8\ns,law,5,6,5,7\n,front,4,2,,\n");
  const DistributionChart distribution = {
      .title = "t",
      .subtitle = {},
      .x_title = "x",
      .distributions = {{.name = "d", .histogram = {3, 0}, .upper = 8}}};
  EXPECT_EQ(csv(distribution), "name,low,high,rows\nd,0,4,3\nd,4,8,0\n");
  const ForestChart forest = {.title = "t",
                              .subtitle = {},
                              .x_title = "x",
                              .rows = {{.name = "f", .value = 1, .told_apart = true}}};
  EXPECT_EQ(csv(forest), "name,told_apart,value,low,high\nf,yes,1,,\n");
  const GridChart grid = {.title = "t",
                          .subtitle = {},
                          .x_title = "x",
                          .y_title = "y",
                          .columns = {"c1", "c2"},
                          .rows = {"r"},
                          .cells = {{.value = 1, .text = "one"}, {}}};
  EXPECT_EQ(csv(grid), "row,column,text,note,value\nr,c1,one,,1\nr,c2,,,\n");
  NamedTexts files;
  AddPicture("p", grid, std::nullopt, &files);
  AddPicture("q", forest, ExportFormat::kCsv, &files);
  AddPicture("r", forest, ExportFormat::kJson, &files, "data");
  ASSERT_EQ(files.size(), 5u);
  EXPECT_EQ(files[0].first, "p.svg");
  EXPECT_EQ(files[2], std::pair(std::string("q.csv"), csv(forest)));
  EXPECT_EQ(files[4].first, "data.json");
}

TEST(HeatMapTest, ACellAnElementByItsSize) {
  HeatMap map = {.title = "Kernels", .subtitle = "", .columns = 2, .matrices = {}};
  map.matrices.push_back({"first", {1, 0.5, 0.25, kNan}});
  map.matrices.push_back({"second", {2, -1, 0, 0.004}});
  const std::string svg = ToSvg(map);
  ExpectGood(svg);
  constexpr size_t kScaleCells = 20;
  EXPECT_EQ(Count(svg, "class=\"cell\""), 4 + kScaleCells);  // white ones are not drawn
  EXPECT_EQ(Count(svg, "fill-opacity=\"1\""), 1u);
  EXPECT_EQ(Count(svg, "fill-opacity=\".50\""), 1u);
  EXPECT_EQ(Count(svg, "fill-opacity=\".25\""), 1u);
  ExpectGood(ToSvg(HeatMap()));
}

TEST(HtmlTest, EscapesWhatIsNotText) {
  EXPECT_EQ(Escaped("<a href='x'>&\"\t\x01"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;  ");
  EXPECT_EQ(Escaped("caf\xe9 \xc3\xa9 \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82"),
            "caf\ufffd \u00e9 \ufffd\ufffd\ufffd \ufffd\ufffd\ufffd\ufffd \ufffd\ufffd");
  EXPECT_EQ(Escaped("a\u202eb\u009b\n"), "a\\u202eb\\u009b\n");
  EXPECT_EQ(EscapedFormula("2 N^\u22120.35 < x^2"), "2 N<sup>\u22120.35</sup> &lt; x^2");
}

TEST(HtmlTest, FiguresWithoutTheStyleThatThePageHas) {
  const std::string svg = ToSvg(Line({1}));
  ASSERT_EQ(Count(svg, std::string(ChartStyle())), 1u);
  const FigureGroup group = {.heading = "<h>", .caption = "c", .figures = {{"one", svg}}};
  const std::string html = FiguresHtml(group);
  EXPECT_EQ(Count(html, std::string(ChartStyle())), 0u);
  EXPECT_EQ(Count(html, "<svg"), 1u);
  EXPECT_EQ(Count(html, "<h3>&lt;h&gt;</h3>"), 1u);
  EXPECT_EQ(FiguresHtml(FigureGroup()), "");
  EXPECT_EQ(Count(Page("t", html, "{}"), std::string(ChartStyle())), 1u);
}

TEST(CsvTest, TextsAndNumbers) {
  EXPECT_EQ(CsvText("a b"), "a b");
  EXPECT_EQ(CsvText("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
  EXPECT_EQ(QuotedCsvText("a"), "\"a\"");
  EXPECT_EQ(CsvNumber(0.1), "0.1");
  EXPECT_EQ(CsvNumber(kNan), "");
}

// What a spreadsheet would compute, or run.
TEST(CsvTest, TextsAreNoFormulas) {
  EXPECT_EQ(CsvText("=1+1"), "'=1+1");
  EXPECT_EQ(CsvText("@SUM(A1,A2)"), "\"'@SUM(A1,A2)\"");
  EXPECT_EQ(CsvText("-2+3"), "'-2+3");
  EXPECT_EQ(CsvText("\t=1"), "'\t=1");
  EXPECT_EQ(QuotedCsvText("+cmd"), "\"'+cmd\"");
  for (const char* plain : {"", "-0.5", "+78.62", "-1e-05", "a=1"})
    EXPECT_EQ(CsvText(plain), plain);
}

}  // namespace
}  // namespace elastor
