#ifndef ELASTOR_TRAINER_PREPARE_GUESS_HEADER_H_
#define ELASTOR_TRAINER_PREPARE_GUESS_HEADER_H_

#include <string>
#include <vector>

#include "configs/proto/schema.pb.h"

namespace elastor {

// Whether the first line after schema.skip_lines names the columns: names are no numbers, each is
// there once, and no row has one in its column. The first name may be empty: R writes the names of
// rows in such a column. REQUIRES: `schema` of FindDialect, and lines.size() > skip_lines.
bool FirstLineIsHeader(const Schema& schema, const std::vector<std::string>& lines);

}  // namespace elastor

#endif  // ELASTOR_TRAINER_PREPARE_GUESS_HEADER_H_
