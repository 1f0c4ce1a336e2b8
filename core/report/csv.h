#ifndef ELASTOR_CORE_REPORT_CSV_H_
#define ELASTOR_CORE_REPORT_CSV_H_

#include <string>

namespace elastor {

// A text as a field of a CSV file (RFC 4180): in quotes where it needs them.
std::string CsvText(const std::string& text);

// The shortest digits that are the number; empty where there is none.
std::string CsvNumber(double value);

}  // namespace elastor

#endif  // ELASTOR_CORE_REPORT_CSV_H_
