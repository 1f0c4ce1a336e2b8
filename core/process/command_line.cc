#include "core/process/command_line.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "core/base/file.h"
#include "core/base/utf8.h"
#include "gflags/gflags.h"

namespace elastor {
namespace {

constexpr int kMaxFlagfileDepth = 8;

using FlagInfo = gflags::CommandLineFlagInfo;

std::vector<FlagInfo> OwnFlags(const std::string& source_file) {
  std::vector<FlagInfo> all, own;
  gflags::GetAllFlags(&all);
  for (const FlagInfo& flag : all) {
    if (flag.filename.ends_with(source_file)) own.push_back(flag);
  }
  return own;
}

std::optional<FlagInfo> FindFlag(const std::string& name) {
  // gflags' own: they would set flags by variables of the environment, past what is checked here,
  // and end the process by themselves, or promise that unknown flags pass.
  if (name == "fromenv" || name == "tryfromenv" || name == "undefok") return std::nullopt;
  FlagInfo flag;
  if (!gflags::GetCommandLineFlagInfo(name.c_str(), &flag)) return std::nullopt;
  return flag;
}

std::string Trim(const std::string& text) {
  constexpr char kSpace[] = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// The shell puts the home directory in the place of ~ only where a word begins with it.
Status CheckHome(const std::string& flag, const std::string& value) {
  const std::string path = flag == "set" ? value.substr(value.find('=') + 1) : value;
  if (path != "~" && !path.starts_with("~/")) return OkStatus();
  return UserError("--" + flag + "=" + value +
                   ": the shell leaves this ~ as it is; expected $HOME" + path.substr(1));
}

class Parser {
 public:
  Parser(const std::string& source_file, Folders folders, std::span<const char* const> lists)
      : source_file_(source_file), folders_(folders), lists_(lists) {}

  Status ParseArguments(std::span<const std::string> arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      std::optional<std::string> next;
      if (i + 1 < arguments.size()) next = arguments[i + 1];
      bool took_next = false;
      ELASTOR_RETURN_IF_ERROR(ParseOne(arguments[i], next, &took_next));
      i += took_next;
    }
    return OkStatus();
  }

  const CommandLine& result() const { return result_; }

 private:
  Status ParseOne(const std::string& argument, const std::optional<std::string>& next,
                  bool* took_next) {
    if (const Status utf8 = CheckUtf8(argument); !utf8.ok()) {
      return UserError(where_ + utf8.message());
    }
    const size_t name_begin = argument.find_first_not_of('-');
    if (name_begin == 0 && folders_ == Folders::kAny && where_.empty()) {
      result_.folders.push_back(argument);
      return OkStatus();
    }
    if (name_begin == 0 || name_begin > 2 || name_begin == argument.npos) {
      return UserError(where_ + NoFlag(argument).message());
    }
    const size_t equals = argument.find('=');
    std::string name = argument.substr(name_begin, equals - name_begin);
    if (argument == "-h") name = "help";
    std::optional<std::string> value;
    if (equals != argument.npos) value = argument.substr(equals + 1);

    std::optional<FlagInfo> flag = FindFlag(name);
    if (!flag && !value && name.starts_with("no")) {
      flag = FindFlag(name.substr(2));
      if (flag && flag->type != "bool") flag.reset();
      value = "false";
    }
    if (!flag) return UserError(where_ + "--" + name + ": no such flag" + OwnNames());
    if (!value && flag->type == "bool") value = "true";
    // A flag that has lost its value must not take the next flag for one.
    if (!value && next && !next->starts_with("--")) {
      value = next;
      *took_next = true;
      if (const Status utf8 = CheckUtf8(*value); !utf8.ok()) {
        return UserError(where_ + "--" + name + ": " + utf8.message());
      }
    }
    if (!value) {
      return UserError(where_ + "--" + name + ": expected a value, --" + name + "=value" +
                       (next ? ", found '" + *next + "'" : ""));
    }
    if (const Status home = CheckHome(name, *value); !home.ok()) {
      return UserError(where_ + home.message());
    }
    return Set(*flag, *value);
  }

  Status Set(const FlagInfo& flag, const std::string& value) {
    if (flag.name == "flagfile") return ParseFlagfile(value);
    if (flag.name == "set") {
      result_.overrides.push_back(value);
      return OkStatus();
    }
    if (flag.name == "help") {
      result_.help = true;
      if (value != "true") result_.help_topic = value;
      return OkStatus();
    }
    if (flag.name == "version" && value == "true") {
      result_.version = true;
      return OkStatus();
    }
    std::string whole = value;
    if (std::ranges::find(lists_, flag.name) != lists_.end() && !flag.current_value.empty()) {
      whole = flag.current_value + "," + value;
    }
    if (gflags::SetCommandLineOption(flag.name.c_str(), whole.c_str()).empty()) {
      return UserError(where_ + "--" + flag.name + ": expected a value of type " + flag.type +
                       ", found '" + value + "'");
    }
    return OkStatus();
  }

  Status ParseFlagfile(const std::string& path) {
    if (++depth_ > kMaxFlagfileDepth) {
      return UserError(where_ + "--flagfile=" + path + ": flag files name each other in a circle");
    }
    const StatusOr<std::string> text = ReadFile(path);
    if (!text.ok()) {
      return Status(text.status().code(), where_ + "--flagfile: " + text.status().message());
    }
    const std::string outer = where_;
    std::istringstream lines(text.value());
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      line = Trim(line);
      if (line.empty() || line[0] == '#') continue;
      where_ = path + ":" + std::to_string(number) + ": ";
      bool ignored = false;
      ELASTOR_RETURN_IF_ERROR(ParseOne(line, std::nullopt, &ignored));
    }
    where_ = outer;
    --depth_;
    return OkStatus();
  }

  std::string OwnNames() const {
    std::string names;
    for (const FlagInfo& flag : OwnFlags(source_file_)) {
      names += (names.empty() ? "; there are: --" : ", --") + flag.name;
    }
    return names + ", --flagfile";
  }

  const std::string source_file_;
  const Folders folders_;
  const std::span<const char* const> lists_;
  CommandLine result_;
  std::string where_;  // "file:line: " inside a flag file, else empty
  int depth_ = 0;      // flag files being read
};

}  // namespace

StatusOr<CommandLine> ParseCommandLine(std::span<const std::string> arguments,
                                       const std::string& source_file, Folders folders,
                                       std::span<const char* const> lists) {
  Parser parser(source_file, folders, lists);
  ELASTOR_RETURN_IF_ERROR(parser.ParseArguments(arguments));
  return parser.result();
}

Status NoFlag(const std::string& argument) {
  return UserError("'" + argument + "': expected a flag, --name=value");
}

std::string FlagsHelp(const std::string& source_file) {
  std::string help;
  for (const FlagInfo& flag : OwnFlags(source_file)) {
    help += "  --" + flag.name + "  " + flag.description;
    if (!flag.default_value.empty()) help += " (default: " + flag.default_value + ")";
    help += "\n";
  }
  return help +
         "  --flagfile  a file with one flag a line, put in its place\n"
         "  --version  version and commit of this program, its compiler and its numerics\n";
}

}  // namespace elastor
