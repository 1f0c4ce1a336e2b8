#!/usr/bin/env bash
# Installs Arrow's C++ library with its headers, which reading Parquet and Arrow files needs and Debian 12 lacks, into
# ${XDG_CACHE_HOME:-~/.cache}/elastor/arrow. It comes out of one version of pyarrow's wheel, named by its hash below.
# Silent and quick when it is there. Build again afterwards. Takes no arguments. ELASTOR_MACHINE: aarch64 or x86_64, the
# machine that it is for; by default this one.
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
cd "$(dirname "$0")/.."

version=26.0.1
machine=${ELASTOR_MACHINE:-$(uname --machine)}
hash=39cb0f2418282c24bea6ceda77b03e5a8f0a5766b63a8bf194d4e2a2c423548c
if [[ $machine == aarch64 ]]; then hash=22a96a225de107eb9acd1ad9a818198ca832df2a4c0952412f754a7ed2105a98; fi
folder=${XDG_CACHE_HOME:-$HOME/.cache}/elastor/arrow
[[ $(cat "$folder/hash" 2>/dev/null) != "$hash" ]] || exit 0

if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "$0: python3 has no pip; expected Debian's package python3-pip, or another pip" >&2
  exit 2
fi
mkdir -p "$(dirname "$folder")"
# One call at a time; another may just have installed it.
exec 9>"$folder.lock"
flock 9
[[ $(cat "$folder/hash" 2>/dev/null) != "$hash" ]] || exit 0
made=$(mktemp --directory "$folder.XXXXXX")
trap 'rm -rf "$made"' EXIT
python3 - "$made" "$version" "$hash" "$machine" <<'PY'
import glob, os, subprocess, sys, zipfile
made, version, digest, machine = sys.argv[1:]
with open(made + "/requirements", "w") as file:
  file.write(f"pyarrow=={version} --hash=sha256:{digest}\n")
# Any Python's pip: the wheel is not installed, but taken apart.
subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                "--python-version=3.11", "--implementation=cp", "--abi=cp311", f"--platform=manylinux_2_28_{machine}",
                "--require-hashes", "--dest", made, "--requirement", made + "/requirements"], check=True)
[wheel] = glob.glob(made + "/*.whl")
with zipfile.ZipFile(wheel) as archive:
  for name in (name for name in archive.namelist() if not name.endswith("/")):
    inside = name.removeprefix("pyarrow/")
    if inside.startswith(("include/arrow/", "include/parquet/")):
      path = inside
    elif inside.startswith(("libarrow.so.", "libparquet.so.")):
      path = "lib/" + inside
    elif name.endswith(("/LICENSE.txt", "/NOTICE.txt")):
      path = os.path.basename(name)
    else:
      continue
    os.makedirs(os.path.dirname(f"{made}/{path}"), exist_ok=True)
    with open(f"{made}/{path}", "wb") as file:
      file.write(archive.read(name))
os.remove(wheel)
os.remove(made + "/requirements")
PY
# The library must have the std::string of this compiler.
if ! grep --quiet --text _ZN5arrow2io12ReadableFile4OpenERKNSt7__cxx1112basic_string "$made"/lib/libarrow.so.*; then
  echo "$0: pyarrow $version has another ABI of std::string than g++; expected the new one (__cxx11)" >&2
  exit 1
fi
echo "$hash" >"$made/hash"
rm -rf "$folder"
mv "$made" "$folder"
# A running server of Bazel has looked for it once.
if command -v bazel >/dev/null; then bazel shutdown 9>&-; fi
echo "$0: installed Arrow $version into $folder in $SECONDS s"
