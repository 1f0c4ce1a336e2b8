#!/usr/bin/env bash
# Reads which versions of glibc's symbols, and which shared libraries, the programs and libraries of a release ask for.
# Prints the newest version and a line for each file that asks for too much, and then ends with exit code 1. Expected
# are glibc's, GCC's and CUDA's libraries, those in the release, and for libraries that of C++.
#
#   tools/check_symbols.sh FOLDER [NEWEST_GLIBC]
set -euo pipefail
if [[ " $* " =~ \ (-h|--help)\  ]]; then
  sed --quiet '2,/^[^#]/s/^# \{0,1\}//p' "$0"
  exit
fi
root=$1
newest_allowed=${2:-2.34}

host='ld-linux-x86-64|ld-linux-aarch64|libc|libm|libdl|libpthread|librt|libutil|libresolv|libgcc_s'
host+='|libcuda|libcudart|libcublas|libcublasLt|libnccl'
newest=0 found=0 files=0
while IFS= read -r -d '' file; do
  dynamic=$(readelf --dynamic "$file" 2>/dev/null) || continue
  [[ -n $dynamic ]] || continue
  files=$((files + 1))
  version=$(readelf --version-info --wide "$file" | sed --quiet 's/.*Name: GLIBC_\([0-9.]*\) .*/\1/p' |
    sort --version-sort | tail --lines=1)
  newest=$(printf '%s\n' "$newest" "${version:-0}" | sort --version-sort | tail --lines=1)
  if ! printf '%s\n' "${version:-0}" "$newest_allowed" | sort --version-sort --check 2>/dev/null; then
    echo "$file: asks for glibc $version; expected $newest_allowed or older" && found=1
  fi
  while read -r library; do
    [[ $library =~ ^($host)\.so || -e $root/lib/$library || -e $root/lib/elastor/$library ]] ||
      [[ -e ${file%/*}/$library ]] ||
      [[ $file == */@(lib|arrow)/* && $library == libstdc++.so.6 ]] ||
      { echo "$file: asks for $library; expected it in the release" && found=1; }
  done < <(sed --quiet 's/.*(NEEDED).*\[\(.*\)\]/\1/p' <<<"$dynamic")
done < <(find "$root" -type f \( -perm -u+x -o -name '*.so*' \) -print0 | sort --zero-terminated)
[[ $files -gt 0 ]] || { echo "$root: holds no program; expected the folder of a release" && found=1; }
echo "$root: $files programs and libraries ask for glibc $newest or older"
exit "$found"
