#include "core/base/log.h"

#include "glog/logging.h"

namespace elastor {

void StartLog(const char* program) {
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(program);
}

namespace log_internal {

void AppendReal(std::string* text, double value) { *text += Format("%g", value); }

void AppendPointer(std::string* text, const volatile void* value) {
  *text += Format("%p", const_cast<const void*>(value));
}

Warning::~Warning() { google::LogMessage(file_, line_, google::GLOG_WARNING).stream() << text_; }

Fatal::Fatal(const char* file, int line, const char* check, std::string* values)
    : Line(file, line) {
  StrAppend(&text_, "Check failed: ", check, values == nullptr ? " " : " (");
  if (values != nullptr) StrAppend(&text_, *values, ") ");
}

Fatal::~Fatal() { google::LogMessageFatal(file_, line_).stream() << text_; }

}  // namespace log_internal
}  // namespace elastor
