#ifndef ELASTOR_CORE_REPORT_CSV_H_
#define ELASTOR_CORE_REPORT_CSV_H_

#include <string>

namespace elastor {

// Returns a text as a field of a CSV file (RFC 4180), in quotes if it needs them. A spreadsheet
// would take a text that begins with =, +, -, @ or a tab for a formula: unless it is a number, it
// gets an apostrophe before it.
std::string CsvText(std::string text);
// Does the same, always in quotes.
std::string QuotedCsvText(std::string text);

// Returns the shortest digits that read back as the number; empty if it is not finite.
std::string CsvNumber(double value);

}  // namespace elastor

#endif  // ELASTOR_CORE_REPORT_CSV_H_
