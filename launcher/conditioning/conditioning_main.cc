// conditioning: the tables and pictures of docs/results/reproduce_conditioning.md.

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/process/claimed_folder.h"
#include "core/process/standard_streams.h"
#include "launcher/conditioning/studies.h"
#include "launcher/folder_program.h"
#include "trainer/data/dataset.h"

DEFINE_string(studies, "",
              "which ones, comma separated: condition_numbers, finite_widths, heat_maps, "
              "two_samples, losses, image_losses, crossings, claims; default: all");
DEFINE_int32(seeds, 5, "draws of inputs and of weights");
DEFINE_bool(large, true, "also sizes that take minutes");
DEFINE_string(images, "", "prepared images, of which image_losses takes the first to validate on");

namespace elastor {
namespace {

constexpr char kSourceFile[] = "conditioning_main.cc";
constexpr int kMostSeeds = 1000;

// The studies that --studies names, in their own order.
StatusOr<std::vector<Study>> ChosenStudies() {
  if (FLAGS_studies.empty()) return Studies();
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= FLAGS_studies.size();) {
    const size_t end = std::min(FLAGS_studies.find(',', begin), FLAGS_studies.size());
    names.push_back(FLAGS_studies.substr(begin, end - begin));
    if (std::ranges::find(Studies(), names.back(), &Study::name) == Studies().end()) {
      return UserError("--studies: \"" + names.back() + "\" is none; --help lists them");
    }
    if (names.back() == "image_losses" && FLAGS_images.empty()) {
      return UserError("--studies: image_losses without --images; expected prepared images");
    }
    begin = end + 1;
  }
  std::vector<Study> chosen;
  for (const Study& study : Studies()) {
    if (std::ranges::find(names, study.name) != names.end()) chosen.push_back(study);
  }
  return chosen;
}

// Some images of --images, or none without it.
Status ReadImages(StudyOptions* options) {
  constexpr int64_t kImages = 300;
  if (FLAGS_images.empty()) return OkStatus();
  ELASTOR_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset, Dataset::Open(FLAGS_images));
  const int64_t pixels = dataset->info().image.pixels();
  const int64_t rows = dataset->rows(Split::kValidation);
  if (pixels == 0 || rows < kImages) {
    return UserError(StrCat("--images=", FLAGS_images, ": has ", rows, " rows to validate on, of ",
                            pixels, " pixels each; expected at least ", kImages, " images"));
  }
  Rows read;
  ELASTOR_RETURN_IF_ERROR(
      dataset->Read(Split::kValidation, {.shuffled = false}, 0, {0, kImages}, &read));
  options->images.resize(kImages, pixels);
  options->classes.resize(kImages);
  for (int64_t i = 0; i < kImages; ++i) {
    options->classes[i] = read.labels[i];
    for (int64_t p = 0; p < pixels; ++p) options->images(i, p) = read.numeric[i * pixels + p];
    if (options->images.row(i).isZero(0)) {
      return UserError(
          StrCat("--images=", FLAGS_images, ": all pixels of the validation row ", i,
                 " are the training split's mean; expected images that differ from it"));
    }
  }
  if (options->classes.minCoeff() == options->classes.maxCoeff()) {
    return UserError(StrCat("--images=", FLAGS_images, ": the first ", kImages,
                            " rows to validate on are of one class; expected several"));
  }
  return OkStatus();
}

Status Run(const std::vector<std::string>& folders) {
  if (folders.size() != 1) {
    return UserError(
        StrCat(folders.size(), " folders; expected one, where tables and pictures are written"));
  }
  if (FLAGS_seeds < 1 || FLAGS_seeds > kMostSeeds) {
    return UserError(StrCat("--seeds=", FLAGS_seeds, ": expected 1 to ", kMostSeeds));
  }
  ELASTOR_ASSIGN_OR_RETURN(const std::vector<Study> studies, ChosenStudies());
  StudyOptions options = {.seeds = FLAGS_seeds, .large = FLAGS_large};
  ELASTOR_RETURN_IF_ERROR(ReadImages(&options));
  ELASTOR_ASSIGN_OR_RETURN(const ClaimedFolder claimed, ClaimedFolder::Claim(folders[0]));
  for (const Study& study : studies) {
    const Clock::time_point begin = Clock::now();
    const std::vector<StudyFile> files = study.run(options);
    std::string written;
    for (const StudyFile& file : files) {
      ELASTOR_RETURN_IF_ERROR(WriteFileAtomically(folders[0] + "/" + file.name, file.text));
      written += " " + file.name;
    }
    char seconds[32];
    std::snprintf(seconds, sizeof(seconds), "%.1f s:", SecondsSince(begin));
    ELASTOR_RETURN_IF_ERROR(
        WriteToStdout(study.name + " (" + study.what + "), " + seconds + written + "\n"));
  }
  return OkStatus();
}

}  // namespace
}  // namespace elastor

int main(int argc, char** argv) {
  return elastor::RunFolderProgram(
      argc, argv, "conditioning",
      "FOLDER: condition numbers, losses and claims of gated two-layer networks, written there",
      elastor::kSourceFile, elastor::Run);
}
